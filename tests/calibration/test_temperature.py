from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from softtargets.calibration import fit_temperature


def negative_log_likelihood(logits, labels, temperature):
    z = np.asarray(logits, np.float64) / temperature
    return float(np.mean(logsumexp(z, axis=1) - z[np.arange(len(z)), np.asarray(labels)]))


def sampled(scale, count=300, classes=6, seed=0):
    """Labels drawn from softmax(logits), and the logits multiplied by `scale`: the best T is about `scale`."""
    random = np.random.default_rng(seed)
    logits = 2 * random.standard_normal((count, classes))
    gumbel = -np.log(-np.log(random.random((count, classes))))
    return scale * logits, (logits + gumbel).argmax(1)


def best_by_scipy(logits, labels):
    found = minimize_scalar(
        lambda log_t: negative_log_likelihood(logits, labels, math.exp(log_t)),
        bounds=(math.log(0.01), math.log(100)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return math.exp(found.x)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_temperature_scipy_finds(scale, seed):
    logits, labels = sampled(scale, seed=seed)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(best_by_scipy(logits, labels), rel=1e-5)
    assert found == pytest.approx(scale, rel=0.2)


def test_a_temperature_known_in_closed_form():
    # softmax([4, 0] / T) = (3/4, 1/4) exactly when 4 / T = log 3
    logits = torch.tensor([[4.0, 0.0]] * 4)
    assert fit_temperature(logits, torch.tensor([0, 0, 0, 1])) == pytest.approx(4 / math.log(3), rel=1e-12)


def test_the_slope_vanishes_at_the_temperature_found():
    logits, labels = sampled(2.0)
    t = fit_temperature(logits, labels)
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        weights = [math.exp((value - max(row)) / t) for value in row]
        total += sum(w * value for w, value in zip(weights, row, strict=True)) / sum(weights) - row[label]
    assert abs(total / len(labels)) < 1e-9


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=12),
    data=st.data(),
)
def test_it_never_makes_the_likelihood_worse(rows, data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    t = fit_temperature(np.array(rows), np.array(labels))
    assert 0.01 <= t <= 100
    best = negative_log_likelihood(rows, labels, t)
    for other in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0):
        assert best <= negative_log_likelihood(rows, labels, other) + 1e-9


@pytest.mark.parametrize("c", [0.25, 2.0, 7.0])
def test_scaling_the_logits_scales_the_temperature(c):
    logits, labels = sampled(1.5)
    assert fit_temperature(c * logits, labels) == pytest.approx(c * fit_temperature(logits, labels), rel=1e-9)


def test_adding_a_constant_to_a_row_changes_nothing():
    logits, labels = sampled(1.5)
    shifted = logits + np.linspace(-100, 100, len(logits))[:, None]
    assert fit_temperature(shifted, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_huge_logits_do_not_overflow():
    logits, labels = sampled(1.0)
    assert fit_temperature(logits + 1e6, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-5)


def test_a_separable_set_ends_at_the_lowest_temperature():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
    assert fit_temperature(logits, torch.tensor([0, 1, 0])) == 0.01


def test_a_set_worse_than_chance_ends_at_the_highest_temperature():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
    assert fit_temperature(logits, torch.tensor([1, 0, 1])) == 100


def test_temperatures_beyond_the_ends_are_clipped():
    logits, labels = sampled(1.0)
    assert fit_temperature(logits * 1e4, labels) == 100
    assert fit_temperature(logits * 1e-4, labels) == 0.01


def test_numpy_torch_and_single_precision_agree():
    logits, labels = sampled(2.0)
    expected = fit_temperature(logits, labels)
    assert fit_temperature(torch.tensor(logits), torch.tensor(labels)) == expected
    assert fit_temperature(logits, labels.astype(np.uint8)) == expected
    assert fit_temperature(logits.astype(np.float32), labels) == pytest.approx(expected, rel=1e-5)


def test_the_order_of_examples_does_not_matter():
    logits, labels = sampled(2.0)
    assert fit_temperature(logits[::-1].copy(), labels[::-1].copy()) == pytest.approx(
        fit_temperature(logits, labels), rel=1e-9
    )


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (
            torch.zeros(3),
            torch.zeros(3),
            r"logits must be \(examples, classes\), at least one of each, not \(3,\)",
        ),
        (torch.zeros(3, 2), torch.zeros(2), r"one label for each of the 3 examples, not \(2,\)"),
        (torch.zeros(3, 2), torch.zeros(3, 2), r"one label for each of the 3 examples, not \(3, 2\)"),
        (torch.zeros(0, 2), torch.zeros(0), r"at least one of each, not \(0, 2\)"),
        (torch.tensor([[math.nan, 0.0]]), torch.tensor([0]), "not all finite: nan"),
        (torch.tensor([[math.inf, 0.0]]), torch.tensor([0]), "not all finite: inf"),
        (
            torch.zeros(2, 2),
            torch.tensor([0, 2]),
            "must lie between 0 and 1 for 2 classes, but that of example 1 is 2",
        ),
    ],
)
def test_bad_input_is_refused(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature(logits, labels)


def test_a_very_wide_margin_is_separable_all_the_same():
    assert fit_temperature(torch.tensor([[1e5, 0.0]]), torch.tensor([0])) == 0.01
    assert fit_temperature(torch.tensor([[1e5, 0.0]]), torch.tensor([1])) == 100
    assert fit_temperature(torch.ones(3, 4), torch.tensor([0, 1, 2])) == 1.0
