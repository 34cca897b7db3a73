from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax

from softtargets.calibration import expected_calibration_error, fit_temperature
from softtargets.calibration.sweep import (
    TEMPERATURES,
    TemperatureSweep,
    temperature_by_ece,
    temperature_sweep,
)


def sampled(scale=2.0, count=500, classes=5, seed=0):
    random = np.random.default_rng(seed)
    logits = 2 * random.standard_normal((count, classes))
    labels = (logits + random.gumbel(size=logits.shape)).argmax(1)
    return scale * logits, labels


def ece_by_loop(logits, labels, temperature, bins):
    conf, right = [[] for _ in range(bins)], [[] for _ in range(bins)]
    for row, label in zip(logits, labels, strict=True):
        p = softmax(row / temperature)
        b = min(int(p.max() * bins), bins - 1)
        conf[b].append(p.max())
        right[b].append(row.argmax() == label)
    gaps = (abs(np.mean(c) - np.mean(r)) * len(c) for c, r in zip(conf, right, strict=True) if c)
    return sum(gaps) / len(labels)


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_every_temperature_as_by_a_loop_over_examples(bins):
    logits, labels = sampled()
    temperatures = [0.3, 1.0, 1.7, 4.0]
    found = temperature_sweep(logits, labels, temperatures, bins=bins)
    assert found.temperatures == tuple(temperatures)
    assert found.examples == 500
    for t, nll, ece in zip(temperatures, found.nll, found.ece, strict=True):
        own = log_softmax(logits / t, axis=1)[np.arange(500), labels]
        assert nll == pytest.approx(-own.mean(), rel=1e-12)
        assert ece == pytest.approx(ece_by_loop(logits, labels, t, bins), abs=1e-12)


def test_the_error_is_that_of_the_metric():
    logits, labels = sampled()
    found = temperature_sweep(logits, labels, [0.5, 2.0])
    for t, ece in zip(found.temperatures, found.ece, strict=True):
        assert ece == pytest.approx(
            expected_calibration_error(softmax(logits / t, axis=1), labels), abs=1e-12
        )


def test_metrics_of_ones_own_see_probabilities_and_labels():
    logits, labels = sampled()

    def brier(p, y):
        return float(((p - torch.nn.functional.one_hot(y, 5)) ** 2).sum(1).mean())

    found = temperature_sweep(
        logits, labels, [1.0, 2.0], {"brier": brier, "ece again": expected_calibration_error}
    )
    for t, value in zip((1.0, 2.0), found.metrics["brier"], strict=True):
        assert value == pytest.approx(((softmax(logits / t, axis=1) - np.eye(5)[labels]) ** 2).sum(1).mean())
    assert found.values("ece again") == pytest.approx(found.ece, abs=1e-12)
    assert found.best("brier") == 2.0


def test_a_metric_may_not_take_a_name_that_is_taken():
    with pytest.raises(ValueError, match="may not be called 'ece'"):
        temperature_sweep(*sampled(), metrics={"ece": lambda p, y: 0.0})
    with pytest.raises(ValueError, match="there is no 'mce' in this sweep, only 'nll', 'ece'"):
        temperature_sweep(*sampled(), [1.0]).values("mce")


def test_the_least_error_of_a_grid():
    logits, labels = sampled(scale=3.0)
    errors = {t: ece_by_loop(logits, labels, t, 15) for t in TEMPERATURES}
    found = temperature_by_ece(logits, labels)
    assert errors[found] == pytest.approx(min(errors.values()), abs=1e-12)
    assert found == pytest.approx(3, rel=0.3)


def test_the_grid_of_the_papers_includes_one_and_the_temperatures_they_found():
    # T = 1.9 and 1.4 are those of Müller et al. 2019, section 3.
    assert {1.0, 1.4, 1.9} <= set(TEMPERATURES)


def test_among_equals_the_temperature_nearest_to_one():
    sweep = TemperatureSweep((0.25, 0.5, 1.5, 8.0), nll=(1, 1, 1, 1), ece=(0.3, 0.1, 0.1, 0.2), examples=1)
    assert sweep.best() == 1.5
    assert sweep.best("nll") == 1.5
    assert temperature_by_ece(torch.ones(4, 2), torch.tensor([0, 1, 0, 1])) == 1.0


def test_the_minimum_of_the_likelihood_is_at_the_fitted_temperature():
    logits, labels = sampled()
    t = fit_temperature(logits, labels)
    found = temperature_sweep(logits, labels, [t * f for f in (0.9, 0.999, 1, 1.001, 1.1)])
    assert found.best("nll") == t


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 500), max_size=4), shift=st.floats(-50, 50))
def test_neither_cuts_nor_constants_nor_order_matter(cuts, shift):
    logits, labels = sampled()
    expected = temperature_sweep(logits, labels, [0.5, 1.3])
    order = np.random.default_rng(1).permutation(500)
    z, y = torch.as_tensor(logits[order] + shift), torch.as_tensor(labels[order])
    edges = [0, *sorted(cuts), 500]
    found = temperature_sweep(lambda: [(z[a:b], y[a:b]) for a, b in pairwise(edges)], temperatures=[0.5, 1.3])
    assert found.nll == pytest.approx(expected.nll, rel=1e-10)
    assert found.ece == pytest.approx(expected.ece, abs=1e-10)


def test_confidence_on_an_edge_and_exactly_one():
    # One right with confidence 1/2, the lower edge of bin 1 of 2, and one wrong with confidence 1: both in bin 1.
    logits = torch.tensor([[0.0, 0.0], [1e4, 0.0]])
    found = temperature_sweep(logits, torch.tensor([0, 1]), [1.0], bins=2)
    assert found.ece[0] == pytest.approx(abs((0.5 - 1) + (1 - 0)) / 2)
    assert found.nll[0] == pytest.approx((math.log(2) + 1e4) / 2)


def test_ignored_tokens_may_hold_anything():
    logits, labels = sampled()
    tokens = np.full((50, 11, 5), np.nan)
    tokens[:, :10] = logits.reshape(50, 10, 5)
    classes = np.full((50, 11), -100)
    classes[:, :10] = labels.reshape(50, 10)
    found = temperature_sweep(tokens, classes, [2.0], {"n": lambda p, y: len(y)}, ignore_index=-100)
    assert found.ece == pytest.approx(temperature_sweep(logits, labels, [2.0]).ece, abs=1e-12)
    assert found.metrics["n"] == (500,)


@pytest.mark.parametrize("temperatures", [[], [0.0], [1.0, -2.0], [math.nan], [math.inf]])
def test_temperatures_must_be_positive(temperatures):
    with pytest.raises(ValueError, match="temperatures must be positive numbers, at least one, not"):
        temperature_sweep(*sampled(), temperatures)


def test_bins_must_be_positive():
    with pytest.raises(ValueError, match="bins must be at least 1, not 0"):
        temperature_by_ece(*sampled(), bins=0)
