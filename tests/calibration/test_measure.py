from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from calibration import exact
from softtargets import calibration as library
from softtargets.calibration import CalibrationSums, calibration_of, measure_calibration

EXACT = {
    "expected_calibration_error": library.expected_calibration_error,
    "maximum_calibration_error": library.maximum_calibration_error,
    "debiased_calibration_error": library.debiased_calibration_error,
    "classwise_calibration_error": library.classwise_calibration_error,
    "brier_score": library.brier_score,
}
FROM_CELLS = {
    "adaptive_calibration_error": (library.adaptive_calibration_error, 2e-3),
    "smooth_calibration_error": (library.smooth_calibration_error, 1e-4),
}


@pytest.mark.parametrize(("scale", "truth"), [(0.5, 1.0), (2.0, 0.7), (6.0, 0.3), (30.0, 0.1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_all_in_one_pass_are_what_the_functions_say(scale, truth, dtype):
    logits, y = exact.sampled(count=3000, classes=8, scale=scale, truth=truth, dtype=dtype)
    p = logits.softmax(-1)
    found = measure_calibration(logits, y, from_logits=True, level=None)
    for name, function in EXACT.items():
        assert getattr(found, name) == pytest.approx(function(p, y), abs=1e-6), name
    for name, (function, tolerance) in FROM_CELLS.items():
        assert getattr(found, name) == pytest.approx(function(p, y), abs=tolerance), name
    assert found.negative_log_likelihood == pytest.approx(library.negative_log_likelihood(logits, y))
    assert found.accuracy == library.top_k_accuracy(logits, y)
    assert found.top_5_accuracy == library.top_k_accuracy(logits, y, 5)
    assert found.mean_confidence == pytest.approx(float(p.amax(1).double().mean()))
    assert dataclasses.asdict(found.brier_decomposition) == pytest.approx(
        dataclasses.asdict(library.brier_decomposition(p, y)), abs=1e-6
    )
    assert torch.equal(found.reliability.counts, library.reliability(p, y).counts)
    assert (found.examples, found.classes, found.intervals) == (3000, 8, {})


def test_every_interval_holds_an_ordered_pair_around_where_the_estimate_can_be():
    logits, y = exact.sampled(count=2000, truth=0.5)
    found = measure_calibration(logits, y, from_logits=True, resamples=200)
    assert set(found.intervals) == {
        *EXACT,
        *FROM_CELLS,
        "accuracy",
        "top_5_accuracy",
        "negative_log_likelihood",
    }
    for name, (low, high) in found.intervals.items():
        assert 0 <= low < getattr(found, name) < high or name == "top_5_accuracy", name
    assert found.intervals["top_5_accuracy"][1] == 1
    narrow = measure_calibration(logits, y, from_logits=True, resamples=200, level=0.5).intervals
    assert all(narrow[k][1] - narrow[k][0] < high - low for k, (low, high) in found.intervals.items())


def test_intervals_of_means_are_those_of_the_central_limit():
    logits, y = exact.sampled(count=500)
    low, high = measure_calibration(logits, y, from_logits=True, resamples=2).intervals["brier_score"]
    p = logits.softmax(-1)
    each = (p - torch.nn.functional.one_hot(y, 5)).square().sum(1)
    half = 1.959964 * float(each.std()) / math.sqrt(500)
    assert (low, high) == pytest.approx((float(each.mean()) - half, float(each.mean()) + half), rel=1e-6)


def test_the_same_seed_gives_the_same_intervals():
    logits, y = exact.sampled()
    first, again, other = (
        measure_calibration(logits, y, from_logits=True, resamples=50, seed=s) for s in (1, 1, 2)
    )
    assert first.intervals == again.intervals
    assert first.intervals != other.intervals


def test_a_single_example_can_be_measured():
    found = measure_calibration(torch.tensor([[0.8, 0.2]]), torch.tensor([1]), from_logits=False)
    assert found.expected_calibration_error == pytest.approx(0.8)
    assert found.debiased_calibration_error == 0
    assert found.intervals["brier_score"] == (0, math.inf)
    assert found.scalars()["accuracy"] == 0
    assert "examples" not in found.scalars()


def test_a_label_thought_impossible_has_no_finite_likelihood():
    found = measure_calibration(torch.tensor([[1.0, 0.0]]), torch.tensor([1]), from_logits=False, level=None)
    assert found.negative_log_likelihood == math.inf
    assert found.brier_score == 2


@pytest.mark.parametrize(("options", "message"), [
    ({"level": 95}, "must lie between 0 and 1, such as 0.95 for 95 %, not 95"),
    ({"resamples": 1}, "at least 2 resamples, better 1000, not 1"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(options, message):
    logits, y = exact.sampled()
    with pytest.raises(ValueError, match=message):
        measure_calibration(logits, y, from_logits=True, **options)


def test_nothing_cannot_be_measured():
    with pytest.raises(ValueError, match="there is nothing to measure"):
        calibration_of(CalibrationSums.empty(3))
