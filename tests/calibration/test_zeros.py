from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from softtargets.calibration import (
    ZeroCounts,
    expected_calibration_error,
    logits_from_probabilities,
    temperature_scaling,
    zero_floor,
)


def votes(n=2000, trees=50, seed=0):
    random = np.random.default_rng(seed)
    share = np.exp(0.6 * random.normal(0, 3, (n, 5)))
    share /= share.sum(1, keepdims=True)
    sharp = share**1.7
    sharp /= sharp.sum(1, keepdims=True)
    labels = np.array([random.choice(5, p=one) for one in sharp])
    return np.stack([random.multinomial(trees, one) for one in share]) / trees, labels


def test_the_floor_is_how_often_a_zero_was_the_label():
    p, y = votes()
    zeros, wrong = int((p == 0).sum()), int((p[np.arange(len(y)), y] == 0).sum())
    assert wrong > 0
    assert zero_floor(p, y) == pytest.approx(min((wrong + 0.5) / (zeros + 1), 0.01))


def test_the_floor_has_nearly_the_best_likelihood():
    p, y = votes()

    def nll(log_floor):
        z = logits_from_probabilities(p, floor=float(np.exp(log_floor)))
        return float(torch.nn.functional.cross_entropy(z, torch.from_numpy(y)))

    best = minimize_scalar(nll, bounds=(-12, np.log(0.009)), method="bounded")
    assert nll(np.log(zero_floor(p, y))) - best.fun < 2e-3


def test_a_zero_stays_below_the_smallest_positive_probability():
    p = np.array([[0.999, 0.001, 0.0]] * 3)
    assert zero_floor(p, np.array([2, 2, 2])) == pytest.approx(0.0005)


@pytest.mark.parametrize("smallest", [5e-324, 1e-323, 2e-308, 1e-100])
def test_the_smallest_numbers_there_are_leave_a_floor_above_zero(smallest):
    """Naive Bayes gives them: half of the very smallest is 0, whose logarithm is no number."""
    p = np.array([[1.0, smallest, 0.0]] * 3)
    floor = zero_floor(p, np.array([0, 0, 0]))
    assert 0 < floor <= smallest
    logits = logits_from_probabilities(p, floor=floor)
    assert bool(logits.isfinite().all())
    assert bool((logits[:, 2] <= logits[:, 1]).all())


def test_without_zeros_there_is_no_floor():
    assert zero_floor(np.full((4, 2), 0.5), np.zeros(4, dtype=int)) is None


def test_ignored_rows_have_no_say():
    p = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]])
    assert zero_floor(p, np.array([2, -100]), ignore_index=-100) == pytest.approx(0.25)


def test_counts_may_come_in_pieces():
    p, y = (torch.from_numpy(one) for one in votes(300))
    whole, pieces = ZeroCounts(), ZeroCounts()
    whole.add(p, y)
    for some in (slice(0, 7), slice(7, 300)):
        pieces.add(p[some], y[some])
    assert whole == pieces


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_zeros_of_every_precision_can_be_scaled(dtype):
    p, y = (torch.from_numpy(one) for one in votes())
    p = p.to(dtype)
    floor = zero_floor(p, y)
    fit = temperature_scaling(logits_from_probabilities(p, floor=floor), y)
    assert fit.temperature < 0.8
    scaled = fit(logits_from_probabilities(p, floor=floor)).softmax(1)
    assert expected_calibration_error(scaled, y) < expected_calibration_error(p, y)


@pytest.mark.parametrize("floor", [0.0, 1.0, -1.0, float("nan")])
def test_an_impossible_floor_is_refused(floor):
    with pytest.raises(ValueError, match="between 0 and 1, not"):
        logits_from_probabilities(torch.tensor([[1.0, 0.0]]), floor=floor)
