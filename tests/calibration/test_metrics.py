from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration import exact
from softtargets import calibration as library
from softtargets.calibration.metrics import top_label

BINNED = [
    (library.expected_calibration_error, exact.binned_error),
    (library.maximum_calibration_error, exact.largest_gap),
    (library.debiased_calibration_error, exact.debiased_error),
]
OF_PROBABILITIES = [
    library.expected_calibration_error,
    library.maximum_calibration_error,
    library.debiased_calibration_error,
    library.adaptive_calibration_error,
    library.smooth_calibration_error,
    library.classwise_calibration_error,
    library.brier_score,
]


def two_classes(confidences):
    return torch.tensor([[c, 1 - c] for c in confidences], dtype=torch.float64)


def drawn(**options):
    logits, labels = exact.sampled(**options)
    return logits.softmax(-1), labels


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 40])
@pytest.mark.parametrize(("ours", "loops"), BINNED)
def test_errors_in_bins_against_loops(ours, loops, bins):
    p, y = drawn()
    assert ours(p, y, bins) == pytest.approx(loops(exact.pairs(p, y), bins), abs=1e-12)


@pytest.mark.parametrize("bins", [1, 5, 10, 20])
def test_the_adaptive_error_against_loops(bins):
    p, y = drawn()
    expected = exact.adaptive_error(exact.pairs(p, y), bins)
    assert library.adaptive_calibration_error(p, y, bins) == pytest.approx(expected, abs=1e-12)


def test_examples_of_equal_confidence_are_shared_among_bins_of_equal_mass():
    # Two bins of 1.5 examples: 0.6 and half of the 0.8s that are right by half; the other half and 0.8.
    p, y = two_classes([0.6, 0.8, 0.8]), torch.tensor([0, 0, 1])
    first, second = (0.6 + 0.5 * 0.8) - (1 + 0.5 * 0.5), 1.5 * 0.8 - 1.5 * 0.5
    expected = (abs(first) + abs(second)) / 3
    assert library.adaptive_calibration_error(p, y, bins=2) == pytest.approx(expected, abs=1e-12)
    assert library.adaptive_calibration_error(p[[2, 1, 0]], y[[2, 1, 0]], bins=2) == pytest.approx(expected)


@pytest.mark.parametrize("truth", [0.2, 0.7, 1.0, 3.0])
def test_the_smooth_error_against_reflections_written_out(truth):
    p, y = drawn(count=100, truth=truth)
    found = library.smooth_calibration_error(p, y)
    assert found == pytest.approx(exact.smooth_error(exact.pairs(p, y)), abs=1e-4)


def test_smooth_errors_known_in_closed_form():
    # All residuals have one sign: no smoothing makes them cancel.
    assert library.smooth_calibration_error(two_classes([0.7, 0.9]), torch.tensor([1, 1])) == pytest.approx(
        0.8
    )
    assert library.smooth_calibration_error(torch.eye(3), torch.tensor([0, 1, 2])) == 0
    assert library.smooth_calibration_error(torch.eye(3), torch.tensor([1, 2, 0])) == pytest.approx(1)


@pytest.mark.parametrize("bins", [1, 2, 15, 30])
@pytest.mark.parametrize("classes", [2, 7])
def test_the_classwise_error_against_loops(bins, classes):
    p, y = drawn(classes=classes)
    found = library.classwise_calibration_error(p, y, bins)
    assert found == pytest.approx(exact.classwise_error(p, y, bins), abs=1e-12)


def test_the_brier_score_of_two_classes_is_twice_the_binary_one():
    p, y = drawn(classes=2)
    assert library.brier_score(p, y) == pytest.approx(exact.brier(p, y), rel=1e-12)
    assert library.brier_score(p, y) == pytest.approx(2 * float(((p[:, 1] - y) ** 2).mean()), rel=1e-12)


@pytest.mark.parametrize("bins", [1, 5, 15])
def test_the_parts_of_the_brier_score_against_loops(bins):
    p, y = drawn()
    found = library.brier_decomposition(p, y, bins)
    expected = exact.brier_parts(p, y, bins)
    assert (found.reliability, found.resolution, found.uncertainty, found.within_bins) == pytest.approx(
        expected
    )
    assert found.score == pytest.approx(exact.brier(p, y), rel=1e-12)
    assert found.reliability - found.resolution + found.uncertainty + found.within_bins == pytest.approx(
        found.score
    )


def test_the_likelihood_against_loops_and_far_beyond_what_probabilities_hold():
    logits, y = exact.sampled()
    assert library.negative_log_likelihood(logits, y) == pytest.approx(exact.nll(logits, y), rel=1e-12)
    far = torch.tensor([[0.0, 1000.0]])
    assert library.negative_log_likelihood(far, torch.tensor([0])) == 1000
    assert library.negative_log_likelihood(far + 1e4, torch.tensor([1])) == 0


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_top_k_accuracy_against_loops_with_ties(k):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(4, (300, 8), generator=generator).float()
    y = torch.randint(8, (300,), generator=generator)
    expected = exact.mean(
        exact.rank(row, label) < k for row, label in zip(scores.tolist(), y.tolist(), strict=True)
    )
    assert library.top_k_accuracy(scores, y, k) == pytest.approx(expected)
    if k == 1:
        assert expected == pytest.approx(float((scores.argmax(1) == y).float().mean()))


def test_a_number_of_guesses_must_be_one():
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        library.top_k_accuracy(torch.zeros(1, 2), torch.tensor([0]), 0)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 40), classes=st.integers(2, 6))
def test_the_order_of_examples_and_of_classes_does_not_matter(seed, count, classes):
    p, y = drawn(count=count, classes=classes, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    order, names = torch.randperm(count, generator=generator), torch.randperm(classes, generator=generator)
    renamed = torch.empty_like(p)
    renamed[:, names] = p
    for metric in OF_PROBABILITIES:
        assert metric(p[order], y[order]) == pytest.approx(metric(p, y), abs=1e-9)
        assert metric(renamed, names[y]) == pytest.approx(metric(p, y), abs=1e-9)


@pytest.mark.parametrize("metric", OF_PROBABILITIES)
def test_sure_and_right_is_no_error_and_numpy_says_the_same(metric):
    assert metric(torch.eye(4), torch.arange(4)) == 0
    p, y = drawn()
    assert metric(p.numpy(), y.numpy()) == metric(p, y)
    assert metric(p.reshape(10, 20, 5), y.reshape(10, 20)) == metric(p, y)


@pytest.mark.parametrize("metric", OF_PROBABILITIES)
def test_bad_input_is_refused_in_a_sentence(metric):
    p, y = drawn(count=3)
    broken = p.clone()
    broken[1, 2] = math.nan
    with pytest.raises(ValueError, match="probabilities of example 1 are not all finite: nan for class 2"):
        metric(broken, y)
    with pytest.raises(ValueError, match=r"those of example 0 add up to 0\.5"):
        metric(p / 2, y)
    with pytest.raises(ValueError, match="two classes need two columns"):
        metric(p[:, 0], y)
    with pytest.raises(ValueError, match="that of example 2 is 5"):
        metric(p, torch.tensor([0, 1, 5]))


def test_the_top_label_is_the_first_of_equals():
    confidence, right = top_label(torch.tensor([[0.5, 0.5], [0.5, 0.5]]), torch.tensor([0, 1]))
    assert confidence.tolist() == [0.5, 0.5]
    assert right.tolist() == [True, False]


@pytest.mark.parametrize("bins", [10, 15])
def test_torchmetrics_agrees_but_for_certainty(bins):
    functional = pytest.importorskip("torchmetrics.functional.classification")
    p, y = drawn(count=2000, classes=6)
    for norm, ours in [
        ("l1", library.expected_calibration_error),
        ("max", library.maximum_calibration_error),
    ]:
        theirs = functional.multiclass_calibration_error(p, y, 6, bins, norm)
        assert ours(p, y, bins) == pytest.approx(float(theirs), abs=1e-6)  # single precision there
    # Confidence 1 has a bin of its own there: right at 0.95 and wrong at 1 do not meet in the last bin.
    sure, of = two_classes([0.95, 1.0]), torch.tensor([0, 1])
    theirs = float(functional.multiclass_calibration_error(sure, of, 2, bins))
    assert theirs == pytest.approx((0.05 + 1) / 2)
    assert library.expected_calibration_error(sure, of, bins) == pytest.approx(0.975 - 0.5)


def test_netcal_agrees_but_on_edges():
    metrics = pytest.importorskip("netcal.metrics")
    p, y = drawn(count=2000, classes=6)
    theirs = metrics.ECE(15).measure(p.numpy(), y.numpy())
    assert library.expected_calibration_error(p, y) == pytest.approx(float(theirs), abs=1e-9)
    theirs = metrics.MCE(15).measure(p.numpy(), y.numpy())
    assert library.maximum_calibration_error(p, y) == pytest.approx(float(theirs), abs=1e-9)


@pytest.mark.parametrize("truth", [0.3, 0.7, 1.0])
def test_relplot_agrees_to_the_width_of_its_search(truth):
    relplot = pytest.importorskip("relplot")
    p, y = drawn(count=2000, classes=6, truth=truth)
    values = np.array(exact.pairs(p, y))
    theirs = relplot.smECE(values[:, 0], values[:, 1])
    assert library.smooth_calibration_error(p, y) == pytest.approx(float(theirs), abs=1.5e-3)


def test_where_confidences_crowd_at_one_relplot_has_too_few_points_for_the_integral():
    relplot = pytest.importorskip("relplot")
    p, y = drawn(count=200, classes=6, scale=10.0, truth=0.1)
    values = exact.pairs(p, y)
    expected = exact.smooth_error(values, points=1000)
    assert library.smooth_calibration_error(p, y) == pytest.approx(expected, abs=1e-4)
    assert abs(relplot.smECE(*map(np.array, zip(*values, strict=True))) - expected) > 2e-3
