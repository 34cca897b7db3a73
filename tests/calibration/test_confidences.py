"""From confidence and correctness alone: the same as from the scores they come from."""

from __future__ import annotations

import pytest
import torch

from softtargets.calibration import (
    ConfidenceSums,
    confidence_calibration_of,
    measure_calibration,
    measure_confidences,
)

SAME = (
    "accuracy",
    "mean_confidence",
    "expected_calibration_error",
    "adaptive_calibration_error",
    "debiased_calibration_error",
    "smooth_calibration_error",
    "maximum_calibration_error",
)


@pytest.fixture(scope="module")
def scores():
    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(4000, 7, generator=generator, dtype=torch.float64)
    labels = torch.distributions.Categorical(logits=logits / 2).sample()
    return logits, labels


@pytest.mark.parametrize("bins", [10, 15])
def test_every_number_of_the_top_label_is_that_of_the_scores(scores, bins):
    logits, labels = scores
    top = logits.softmax(1).max(1)
    found = measure_confidences(top.values, top.indices == labels, bins=bins, resamples=50)
    whole = measure_calibration(logits, labels, from_logits=True, bins=bins, resamples=50)
    for name in SAME:
        assert getattr(found, name) == pytest.approx(getattr(whole, name), abs=1e-9), name
    assert found.reliability.counts.tolist() == whole.reliability.counts.tolist()
    for name in set(found.intervals) - {"top_5_accuracy"}:
        assert found.intervals[name] == pytest.approx(whole.intervals[name], abs=1e-9), name
    assert found.corrected["smooth_calibration_error"] == pytest.approx(
        whole.corrected["smooth_calibration_error"], abs=1e-9
    )


def test_the_squared_error_by_a_loop(scores):
    logits, labels = scores
    top = logits.softmax(1).max(1)
    found = measure_confidences(top.values, top.indices == labels, level=None)
    loop = sum(
        (p - float(right)) ** 2
        for p, right in zip(top.values.tolist(), (top.indices == labels).tolist(), strict=True)
    )
    assert found.squared_error == pytest.approx(loop / len(labels))
    assert found.intervals == {}


def test_sums_can_be_added_up(scores):
    logits, labels = scores
    top = logits.softmax(1).max(1)
    p, right = top.values, top.indices == labels
    parts = ConfidenceSums.empty().add(p[:100], right[:100])
    parts.merge(ConfidenceSums.empty().add(p[100:], right[100:]))
    whole = measure_confidences(p, right, level=None)
    found = confidence_calibration_of(parts, level=None)
    assert found.scalars() == pytest.approx(whole.scalars())
    with pytest.raises(ValueError, match="same number of bins"):
        parts.merge(ConfidenceSums.empty(10))


def test_sums_can_be_taken_away(scores):
    logits, labels = scores
    top = logits.softmax(1).max(1)
    p, right = top.values, top.indices == labels
    some, whole = (ConfidenceSums.empty().add(p[:end], right[:end]) for end in (100, len(p)))
    left = confidence_calibration_of(whole.without(some), level=None)
    assert left.scalars() == pytest.approx(measure_confidences(p[100:], right[100:], level=None).scalars())
    assert (some.examples, whole.examples) == (100, len(p))
    with pytest.raises(ValueError, match="same number of bins"):
        whole.without(ConfidenceSums.empty(10))


@pytest.mark.parametrize(
    ("confidence", "correct", "words"),
    [
        ([0.5, 1.01], [1, 0], "example 1 is 1.01; it must lie between 0 and 1"),
        ([0.5, float("nan")], [1, 0], "example 1 is nan"),
        ([0.5, 0.6], [1, 2], r"right \(1\) or wrong \(0\), not 2"),
        ([0.5, 0.6], [1], "each of the 2 confidences, not 1"),
    ],
)
def test_what_is_no_confidence_is_refused(confidence, correct, words):
    sums = ConfidenceSums.empty()
    with pytest.raises(ValueError, match=words):
        sums.add(torch.tensor(confidence), torch.tensor(correct))
    assert sums.examples == 0
    with pytest.raises(ValueError, match="nothing to measure"):
        confidence_calibration_of(sums)
