from __future__ import annotations

import pytest
from softtargets.bench.calibration.grid import plan
from softtargets.bench.calibration.results import Case

from softtargets.exceptions import SofttargetsError


def test_by_default_a_million_examples_of_a_thousand_classes():
    assert plan("cpu").cases == (Case("cpu", 1_000_000, 1000),)
    assert plan("cpu").contestants == (
        "ours",
        "ours with intervals",
        "ours streamed",
        "torchmetrics",
        "torchmetrics streamed",
        "netcal",
    )


def test_beside_a_gpu_the_cpu_has_fewer_examples():
    assert plan("cuda").cases == (Case("cpu", 50_000, 1000), Case("cuda", 1_000_000, 1000))
    assert plan("cuda", examples=100).cases[0] == Case("cpu", 100, 1000)
    assert plan("cuda", cpu_examples=70).cases[0] == Case("cpu", 70, 1000)


def test_rivals_may_be_chosen():
    assert plan("cpu", rivals="netcal, torchmetrics streamed").rivals == ("netcal", "torchmetrics streamed")
    assert plan("cpu", rivals="none").rivals == ()
    with pytest.raises(SofttargetsError, match=r"no 'netcall'.*netcal"):
        plan("cpu", rivals="netcall")


@pytest.mark.parametrize(
    ("word", "least"),
    [("examples", 8), ("classes", 2), ("cpu_examples", 8), ("batch", 1), ("repeats", 1), ("threads", 1)],
)
def test_numbers_that_are_too_small_are_refused(word, least):
    plan("cpu", **{word: least})
    with pytest.raises(SofttargetsError, match=f"--{word.replace('_', '-')} must be at least {least}, not"):
        plan("cpu", **{word: least - 1})
