from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.noise import METHODS, estimate_noise, symmetric_transitions
from softtargets.noise.estimation.anchors import find_anchors
from softtargets.noise.estimation.interval import bootstrap, resampled
from softtargets.noise.estimation.sample import as_sample

from .making import simulated


def test_the_truth_lies_within_in_most_of_twenty_cases():
    matrix = symmetric_transitions(0.25, 3)
    rates, entries = [], []
    for seed in range(20):
        _, noisy, probabilities = simulated(matrix, seed, examples=600, apart=5.0)
        interval = estimate_noise(noisy, probabilities, resamples=30, level=0.95).interval
        low, high = interval.clean_rate
        rates.append(low <= 0.75 <= high)
        entries.append(((interval.matrix_low <= matrix) & (matrix <= interval.matrix_high)).mean())
    assert sum(rates) >= 17  # of 20 at 95 %, fewer happen once in a hundred times
    assert np.mean(entries) > 0.88  # 180 entries, three of a row not independent


@pytest.mark.parametrize("method", METHODS)
def test_reproducible_by_seed(method):
    _, noisy, probabilities = simulated(symmetric_transitions(0.2, 3), seed=0, examples=300)
    first, again, other = (
        estimate_noise(noisy, probabilities, method, resamples=10, seed=seed).interval for seed in (0, 0, 1)
    )
    assert first.clean_rate == again.clean_rate != other.clean_rate
    assert np.array_equal(first.matrix_high, again.matrix_high)
    assert (first.level, first.resamples) == (0.95, 10)


def test_four_times_the_examples_halve_the_interval():
    widths = []
    for examples in (800, 3200):
        _, noisy, probabilities = simulated(symmetric_transitions(0.3, 3), seed=0, examples=examples)
        low, high = estimate_noise(noisy, probabilities, "naive", resamples=200).interval.clean_rate
        widths.append(high - low)
    assert widths[0] / widths[1] == pytest.approx(2, rel=0.25)


def test_the_naive_interval_is_that_of_a_share():
    _, noisy, probabilities = simulated(symmetric_transitions(0.3, 3), seed=1, examples=2000)
    found = estimate_noise(noisy, probabilities, "naive", resamples=400, level=0.9)
    expected = 1.645 * math.sqrt(found.clean_rate * (1 - found.clean_rate) / 2000)
    low, high = found.interval.clean_rate
    assert (high - low) / 2 == pytest.approx(expected, rel=0.15)
    assert (high + low) / 2 == pytest.approx(found.clean_rate, abs=0.3 * expected)


def test_a_resample_draws_as_often_as_there_are_examples():
    weights = torch.stack([resampled(101, seed=0, resample=r) for r in range(200)])
    assert weights.sum(1).tolist() == [101] * 200
    assert weights.mean(0).tolist() == pytest.approx([1] * 101, abs=0.4)
    assert weights.var().item() == pytest.approx(1 - 1 / 101, abs=0.05)  # of Poisson, nearly
    assert torch.equal(weights[3], resampled(101, seed=0, resample=3))
    assert not torch.equal(weights[3], resampled(101, seed=1, resample=3))


def test_ends_against_the_definition():
    joint = torch.tensor([[0.5, 0.1], [0.1, 0.3]], dtype=torch.float64)
    shifts = iter(np.linspace(-0.02, 0.05, 41).tolist())

    def another(weights):
        shift = next(shifts)
        return torch.tensor([[0.5 - shift, 0.1 + shift], [0.1, 0.3]], dtype=torch.float64)

    found = bootstrap(joint, another, examples=1000, level=0.9, resamples=41, seed=0)
    deviation = np.std(np.linspace(-0.02, 0.05, 41), ddof=1)
    assert found.clean_rate == pytest.approx((0.8 - 1.6449 * deviation, 0.8 + 1.6449 * deviation), abs=1e-5)
    assert found.matrix_low[0, 1] == pytest.approx((0.1 - 1.6449 * deviation) / 0.6, abs=1e-5)
    assert found.matrix_high[0, 1] == pytest.approx((0.1 + 1.6449 * deviation) / 0.6, abs=1e-5)


def test_what_no_example_shows_may_be_there_all_the_same():
    joint = torch.tensor([[0.5, 0.0], [0.0, 0.5]], dtype=torch.float64)
    found = bootstrap(joint, lambda weights: joint, examples=200, level=0.95, resamples=5, seed=0)
    assert found.matrix_low[0, 1] == 0
    assert found.matrix_high[0, 1] == pytest.approx(-math.log(0.05) / 100)  # the rule of three


def test_anchors_are_as_many_as_were_counted():
    """The most confident tenth says nothing of what one in a hundred examples does, however many there are."""
    random = np.random.default_rng(0)
    labels = np.arange(2000) % 4
    logits = 4 * np.eye(4)[labels] + random.standard_normal((2000, 4))
    labels = np.where(random.random(2000) < 0.2, (labels + 1) % 4, labels)
    data = as_sample(torch.tensor(labels), torch.tensor(logits).softmax(1))
    found = estimate_noise(labels, torch.tensor(logits).softmax(1), "anchors", resamples=20)
    anchors = find_anchors(data)
    assert found.examples == anchors.examples < 2000
    rows = anchors.counts.sum(1).numpy()
    assert (found.interval.matrix_high >= np.minimum(-math.log(0.05) / rows, 1)[:, None] - 1e-9).all()
    assert estimate_noise(labels, torch.tensor(logits).softmax(1), "naive", resamples=2).examples == 2000
