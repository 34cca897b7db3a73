from __future__ import annotations

import pytest

from benchmarks.losses.grid import ALONE, LOSSES, grid
from benchmarks.losses.results import LinearCase, LossCase
from softtargets.exceptions import SofttargetsError


def of(kind, **words):
    return [case for case in grid("cpu", **words).cases if type(case) is kind]


def test_the_default_on_a_gpu_is_the_table_we_publish():
    found = grid("cuda")
    assert len(found.cases) == 7 * 3 * 2
    assert found.cases[0] == LossCase("label_smoothing", 8192, 32768, "bf16")
    assert {case.loss for case in found.cases} == {"label_smoothing", "labo", "confidence_penalty"}
    assert found.names(found.cases[0]) == ("ours", "eager", "compile", "liger")


def test_projections_have_rivals_of_their_own_which_know_cross_entropy_only():
    found = grid("cuda", linear=True)
    projections = found.cases[7 * 3 * 2 :]
    assert [case.loss for case in projections] == [
        "cross_entropy",
        "label_smoothing",
        "labo",
        "confidence_penalty",
    ]
    assert found.names(projections[0]) == (
        "ours",
        "materialised",
        "eager",
        "compile",
        "liger",
        "torch",
        "cce",
    )
    few = grid("cpu", losses="labo", rivals="torch,eager", linear=True)
    assert [few.names(case) for case in few.cases[-2:]] == [
        ("ours", "eager"),
        ("ours", "materialised", "torch", "eager"),
    ]


def test_cases_come_size_by_size():
    found = grid("cpu", losses="labo,focal", sizes="2x10, 4X20", dtypes="fp32,bf16").cases
    assert [case.rows for case in found] == [2] * 4 + [4] * 4


def test_all_losses_no_rivals_in_place_and_linear():
    words = {"losses": "all", "sizes": "2x3", "rivals": "none", "in_place": True, "linear": True}
    assert tuple(case.loss for case in of(LossCase, **words)) == LOSSES
    assert tuple(case.loss for case in of(LinearCase, **words)) == ALONE
    assert grid("cpu", **words).contestants[LossCase] == ("ours", "ours in place")
    assert of(LinearCase, linear_size="4x5x6")[0].size == "4 x 5 x 6"


def test_a_case_named_twice_is_measured_once():
    assert len(grid("cpu", losses="labo", sizes="2x10,2x10", dtypes="fp32,fp32").cases) == 1


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
        ({"rivals": "igel"}, "allowed: eager, compile, liger, torch, cce, none"),
        ({"linear_size": "10x10"}, "--linear-size: '10x10' is not rows x hidden x classes"),
        ({"losses": "matrix", "linear": True}, "--linear has nothing to compare among --losses matrix"),
    ],
)
def test_words_that_mean_nothing_are_refused(options, message):
    with pytest.raises(SofttargetsError) as refusal:
        grid("cpu", **options)
    assert message in str(refusal.value)
