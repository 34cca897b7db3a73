from __future__ import annotations

from dataclasses import replace

import pytest
from softtargets.bench.calibration.results import Results

from bench.calibration.making import SESSION, cpu, entry, gpu, made_up
from softtargets.exceptions import SofttargetsError


def test_results_come_back_from_their_file_as_they_were(tmp_path):
    results = made_up()
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results


def test_a_ratio_is_above_one_where_ours_is_faster():
    assert cpu().ratio("torchmetrics") == 2.0
    assert cpu().ratio("torchmetrics", "ours with intervals") == pytest.approx(4 / 3)
    assert gpu().ratio("torchmetrics") == 0.5
    assert cpu().ratio("netcal") is None
    assert cpu().ratio("nobody") is None


def test_a_gpu_is_compared_with_the_cpu_per_example():
    results = made_up()
    # Ten times the examples in a quarter of the time.
    assert results.gain(results.cases[1], "ours") == 40.0
    assert results.gain(results.cases[0], "ours") is None
    assert results.gain(results.cases[1], "netcal") is None


def test_sessions_are_not_mixed():
    other = replace(gpu(), session=1)
    results = Results((SESSION, SESSION), (cpu(), other))
    assert results.gain(other, "ours") is None


def test_who_computes_something_else_is_named():
    wrong = entry("netcal", 1.0, status="disagrees", reason="its ECE is 1, in float64 it is 0")
    assert Results((SESSION,), (cpu(wrong),)).disagreements() == [
        "netcal on cpu, 1,000 x 10: its ECE is 1, in float64 it is 0"
    ]
    assert made_up().disagreements() == []


def test_a_file_of_another_bench_is_refused(tmp_path):
    (tmp_path / "results.json").write_text('{"kind": "softtargets bench losses", "format": 1}')
    with pytest.raises(SofttargetsError, match="does not hold results of 'softtargets bench calibration'"):
        Results.load(tmp_path / "results.json")
