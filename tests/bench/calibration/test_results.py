from __future__ import annotations

from dataclasses import replace

import pytest

from bench.calibration.making import SESSION, cpu, entry, gpu, made_up, results
from benchmarks.calibration.results import CalibrationResult, gain
from benchmarks.calibration.tables import wrong


def test_a_ratio_is_above_one_where_ours_is_faster():
    assert cpu().ratio("torchmetrics") == 2.0
    assert cpu().ratio("torchmetrics", "ours with intervals") == pytest.approx(4 / 3)
    assert gpu().ratio("torchmetrics") == 0.5
    assert cpu().ratio("netcal") is None
    assert cpu().ratio("nobody") is None


def test_a_gpu_is_compared_with_the_cpu_per_example():
    found = made_up()
    on_cpu, on_gpu = found.of(CalibrationResult)
    # Ten times the examples in a quarter of the time.
    assert gain(found, on_gpu, "ours") == 40.0
    assert gain(found, on_cpu, "ours") is None
    assert gain(found, on_gpu, "netcal") is None


def test_sessions_are_not_mixed():
    other = replace(gpu(), session=1)
    assert gain(results(cpu(), other, sessions=(SESSION, SESSION)), other, "ours") is None


def test_who_computes_something_else_is_named():
    other = entry("netcal", 1.0, status="disagrees", reason="its ECE is 1, in float64 it is 0")
    assert wrong(results(cpu(other))).endswith("netcal on cpu, 1,000 x 10: its ECE is 1, in float64 it is 0")
    assert wrong(made_up()) == ""
