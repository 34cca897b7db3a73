from __future__ import annotations

import pytest
from softtargets.bench.losses.grid import ALONE, LOSSES, plan
from softtargets.bench.losses.results import Case

from softtargets.exceptions import SofttargetsError


def test_the_default_on_a_gpu_is_the_table_we_publish():
    found = plan("cuda")
    assert len(found.cases) == 7 * 3 * 2
    assert found.cases[0] == Case("label_smoothing", 8192, 32768, "bf16")
    assert {case.loss for case in found.cases} == {"label_smoothing", "labo", "confidence_penalty"}
    assert found.contestants == ("ours", "eager", "compile", "liger")
    assert found.linear == ()


def test_cases_come_size_by_size():
    found = plan("cpu", losses="labo,focal", sizes="2x10, 4X20", dtypes="fp32,bf16").cases
    assert [case.rows for case in found] == [2] * 4 + [4] * 4


def test_all_losses_no_rivals_in_place_and_linear():
    found = plan("cpu", losses="all", sizes="2x3", rivals="none", in_place=True, linear=True)
    assert tuple(case.loss for case in found.cases) == LOSSES
    assert found.contestants == ("ours", "ours in place")
    assert tuple(case.loss for case in found.linear) == ALONE
    assert plan("cpu", linear_size="4x5x6").linear[0].size == "4 x 5 x 6"


def test_a_case_named_twice_is_measured_once():
    assert len(plan("cpu", losses="labo", sizes="2x10,2x10", dtypes="fp32,fp32").cases) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"losses": "lable_smoothing"}, "--losses: no 'lable_smoothing' (did you mean 'label_smoothing'?)"),
        ({"losses": " , "}, "--losses is empty"),
        ({"sizes": "10"}, "'10' is not rows x classes; write for example 8192x32768"),
        ({"sizes": "10x-3"}, "'10x-3' is not rows x classes"),
        ({"sizes": "10x1"}, "'10x1' is too small"),
        ({"sizes": "0x10"}, "'0x10' is too small"),
        ({"dtypes": "bf61"}, "(did you mean 'bf16'?)"),
        ({"rivals": "igel"}, "allowed: eager, compile, liger, none"),
        ({"linear_size": "10x10"}, "--linear-size: '10x10' is not rows x hidden x classes"),
        ({"losses": "matrix", "linear": True}, "--linear has nothing to compare among --losses matrix"),
    ],
)
def test_words_that_mean_nothing_are_refused(options, message):
    with pytest.raises(SofttargetsError) as refusal:
        plan("cpu", **options)
    assert message in str(refusal.value)
