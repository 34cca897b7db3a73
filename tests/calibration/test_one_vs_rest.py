"""Platt scaling, isotonic regression and histogram binning, against scikit-learn and against counting by hand."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from softtargets.calibration import (
    histogram_binning,
    isotonic_regression,
    log_odds,
    platt_scaling,
    reliability,
)


def made(classes=3, examples=600, seed=0):
    random = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(examples, classes, generator=random, dtype=torch.float64)
    y = torch.multinomial((z / 1.7).softmax(1), 1, generator=random).squeeze(1)
    return z, y


def divided(columns):
    return columns / columns.sum(1, keepdims=True)


def test_log_odds_are_those_of_probabilities_and_do_not_round():
    z, _ = made(5)
    p = z.softmax(1)
    assert torch.allclose(log_odds(z), p.log() - (1 - p).log(), atol=1e-10)
    assert torch.allclose(log_odds(z + 123.0), log_odds(z), atol=1e-9)
    far = torch.tensor([[200.0, 0.0, 0.0]], dtype=torch.float64)
    assert torch.allclose(log_odds(far)[0, 0], 200 - torch.log(torch.tensor(2.0)).double(), atol=1e-9)
    assert torch.isfinite(log_odds(torch.tensor([[0.0, 0.0], [1e4, -1e4]]))).all()


def test_platt_scaling_is_the_optimum_of_its_likelihood_for_every_class():
    z, y = made(4)
    w = np.linspace(0.1, 3, len(y))
    module = platt_scaling(z, y, weights=w)
    odds = log_odds(z).numpy()
    columns = []
    for k in range(4):
        own = (y == k).numpy()
        plus, minus = w[own].sum(), w[~own].sum()
        target = np.where(own, (plus + 1) / (plus + 2), 1 / (minus + 2))

        def loss(at, odds=odds[:, k], target=target):
            a = at[0] * odds + at[1]
            return (w * (np.logaddexp(0, a) - target * a)).sum()

        best = minimize(
            loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 5000}
        )
        assert [float(module.slope[k]), float(module.intercept[k])] == pytest.approx(best.x, abs=1e-5)
        columns.append(1 / (1 + np.exp(-(best.x[0] * odds[:, k] + best.x[1]))))
    assert module(z).numpy() == pytest.approx(divided(np.stack(columns, 1)), abs=1e-5)


def test_platt_scaling_keeps_finite_where_classes_are_separable():
    z = torch.tensor([[5.0, -5.0]] * 10 + [[-5.0, 5.0]] * 10)
    module = platt_scaling(z, torch.tensor([0] * 10 + [1] * 10))
    # Platt's targets: 11/12 for the ten that are right.
    assert module(z)[0, 0].item() == pytest.approx(11 / 12, abs=1e-6)


def test_isotonic_regression_is_scikit_learns_of_each_class():
    z, y = made(3)
    p = z.softmax(1).numpy()
    other = made(3, 200, seed=1)[0]
    w = np.random.default_rng(0).uniform(0.1, 2, len(y))
    module = isotonic_regression(z, y, weights=w)
    columns = [
        IsotonicRegression(out_of_bounds="clip")
        .fit(p[:, k], (y == k).numpy(), w)
        .predict(other.softmax(1)[:, k].numpy())
        for k in range(3)
    ]
    assert module(other).numpy() == pytest.approx(divided(np.stack(columns, 1)), abs=1e-9)


def test_histogram_bins_hold_what_was_counted():
    z, y = made(3)
    p = z.softmax(1).numpy()
    module = histogram_binning(z, y, bins=7)
    expected = np.empty_like(p)
    for k in range(3):
        which = np.minimum((p[:, k] * 7).astype(int), 6)
        for b in range(7):
            here = which == b
            expected[here, k] = (y[here] == k).double().mean() if here.any() else (b + 0.5) / 7
    assert module(z).numpy() == pytest.approx(divided(expected), abs=1e-12)


def test_bins_of_two_classes_are_those_of_a_reliability_diagram():
    z, y = made(2)
    p = z.softmax(1)
    fitted = histogram_binning(p, y, bins=10, from_logits=False)
    # Labels of confident predictions of class 1 come out as the accuracy of their bin.
    chosen = p[:, 1] > 0.5
    both = reliability(p[chosen], y[chosen], bins=10)
    upper = fitted.values[1, 5:]
    assert upper.numpy() == pytest.approx(both.accuracy[5:].numpy(), abs=1e-12)


def test_quantile_bins_hold_as_many_examples():
    z, y = made(2, 1000)
    module = histogram_binning(z, y, bins=4, edges="quantile")
    which = np.searchsorted(module.places[1].numpy(), z.softmax(1)[:, 1].numpy(), side="right")
    assert np.bincount(which).tolist() == [250] * 4


def test_a_class_without_an_example_stays_as_the_model_has_it():
    z, y = made(3)
    y[y == 2] = 0
    p = z.softmax(1)
    for fit in (platt_scaling, isotonic_regression):
        module = fit(z, y)
        assert torch.allclose(module.each(z)[:, 2], p[:, 2], atol=1e-12)
    binned = histogram_binning(z, y, bins=100)
    assert (binned.each(z)[:, 2] - p[:, 2]).abs().max() <= 0.5 / 100 + 1e-12


@pytest.mark.parametrize("fit", [platt_scaling, isotonic_regression, histogram_binning])
def test_zeros_and_ones_are_taken(fit):
    p = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]] * 5)
    module = fit(p, torch.tensor([0, 1, 2, 0] * 4 + [1, 0, 2, 1]), from_logits=False)
    found = module(p)
    assert torch.isfinite(found).all()
    assert torch.allclose(found.sum(1), torch.ones(20), atol=1e-6)


@pytest.mark.parametrize("fit", [platt_scaling, isotonic_regression, histogram_binning])
def test_a_weight_of_two_is_an_example_given_twice_and_one_of_zero_none(fit):
    z, y = made(3, 90)
    w = torch.tensor([0.0, 1.0, 2.0] * 30)
    again = torch.repeat_interleave(torch.arange(90), w.long())
    assert torch.allclose(fit(z, y, weights=w)(z), fit(z[again], y[again])(z), atol=1e-9)


def test_what_is_wrong_is_said():
    z, y = made(3)
    with pytest.raises(ValueError, match="bins must be at least 1"):
        histogram_binning(z, y, bins=0)
    with pytest.raises(ValueError, match="'uniform' or 'quantile'"):
        histogram_binning(z, y, edges="even")
    with pytest.raises(ValueError, match="one weight for each label"):
        platt_scaling(z, y, weights=torch.ones(3))
    with pytest.raises(ValueError, match="finite numbers of at least 0"):
        isotonic_regression(z, y, weights=-torch.ones(len(y)))


@pytest.mark.parametrize("fit", [platt_scaling, isotonic_regression, histogram_binning])
def test_rows_that_are_ignored_leave_no_trace(fit):
    z, y = made(3, 60)
    p = z.softmax(1)
    p[p < 0.1] = 0
    p /= p.sum(1, keepdim=True)
    some = y.clone()
    some[::4] = -100
    counted = some != -100
    without = fit(p[counted], y[counted], from_logits=False)
    ignored = fit(p, some, from_logits=False, ignore_index=-100)
    assert torch.equal(ignored(p), without(p))
    weighted = fit(p, y, from_logits=False, weights=counted.double())
    if (
        fit is not platt_scaling
    ):  # whose zeros count as often as they were wrong, in the rows that are left out too
        assert torch.equal(weighted(p), without(p))


def test_a_bin_that_nobody_fell_into_has_its_middle():
    p = torch.tensor([[0.95, 0.05], [0.05, 0.95]] * 5)
    module = histogram_binning(p, torch.tensor([0, 1] * 5), bins=5, from_logits=False)
    assert module(torch.tensor([[0.5, 0.5], [0.3, 0.7]]))[:, 1].tolist() == pytest.approx([0.5, 0.7])
