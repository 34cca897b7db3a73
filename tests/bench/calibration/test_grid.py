from __future__ import annotations

import pytest

from benchmarks.calibration.grid import grid
from benchmarks.calibration.results import CalibrationCase
from softtargets.exceptions import SofttargetsError


def test_by_default_a_million_examples_of_a_thousand_classes():
    assert grid("cpu").cases == (CalibrationCase("cpu", 1_000_000, 1000),)
    assert grid("cpu").contestants[CalibrationCase] == (
        "ours",
        "ours with intervals",
        "ours streamed",
        "torchmetrics",
        "torchmetrics streamed",
        "netcal",
    )


def test_beside_a_gpu_the_cpu_has_fewer_examples():
    assert grid("cuda").cases == (
        CalibrationCase("cpu", 50_000, 1000),
        CalibrationCase("cuda", 1_000_000, 1000),
    )
    assert grid("cuda", examples=100).cases[0] == CalibrationCase("cpu", 100, 1000)
    assert grid("cuda", cpu_examples=70).cases[0] == CalibrationCase("cpu", 70, 1000)


def rivals(text):
    return grid("cpu", rivals=text).contestants[CalibrationCase][3:]


def test_rivals_may_be_chosen():
    assert rivals("netcal, torchmetrics streamed") == ("netcal", "torchmetrics streamed")
    assert rivals("none") == ()
    with pytest.raises(SofttargetsError, match=r"no 'netcall'.*netcal"):
        grid("cpu", rivals="netcall")


@pytest.mark.parametrize(
    ("word", "least"),
    [("examples", 8), ("classes", 2), ("cpu_examples", 8), ("batch", 1), ("repeats", 1), ("threads", 1)],
)
def test_numbers_that_are_too_small_are_refused(word, least):
    grid("cpu", **{word: least})
    with pytest.raises(SofttargetsError, match=f"--{word.replace('_', '-')} must be at least {least}, not"):
        grid("cpu", **{word: least - 1})
