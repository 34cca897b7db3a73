from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from inspection.advise.cases import advised, next_class, uniform
from softtargets.inspection.advise.uniformity import CLEARLY, uneven, uniformity
from softtargets.inspection.shared.numbers import Estimate
from softtargets.noise import NoiseEstimate, NoiseInterval


def estimate(matrix, reach, shares=None):
    """An estimate whose entries are all known within this reach."""
    matrix = np.array(matrix)
    shares = np.full(len(matrix), 1 / len(matrix)) if shares is None else np.array(shares)
    rate = float((shares * np.diagonal(matrix)).sum())
    low, high = np.clip(matrix - reach, 0, 1), np.clip(matrix + reach, 0, 1)
    interval = NoiseInterval(0.95, 100, (rate, rate), low, high)
    found = NoiseEstimate(matrix, rate, shares, "likelihood", interval, ())
    return found, matrix, Estimate(rate, rate, rate)


def test_the_distance_is_the_mean_total_variation():
    matrix = [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]]
    shares = [0.5, 0.3, 0.2]
    found, T, rate = estimate(matrix, 0.01, shares)
    U = uniform(rate.value, 3)
    by_hand = sum(shares[i] * sum(abs(T[i, j] - U[i, j]) for j in range(3)) / 2 for i in range(3))
    assert uniformity(found, T, rate, 10_000).distance == pytest.approx(by_hand)


def test_the_interval_is_widened_for_all_entries_together():
    found, T, rate = estimate(next_class(0.8, 3), 0.05)
    shape = uniformity(found, T, rate, 100_000)
    wider = NormalDist().inv_cdf(1 - 0.025 / 9) / NormalDist().inv_cdf(0.975)
    assert shape.contradicted
    assert not shape.is_uniform
    assert shape.share.low == pytest.approx(shape.share.value - 0.05 * wider)


def test_an_entry_within_reach_contradicts_nothing():
    found, T, rate = estimate(next_class(0.8, 3), 0.2)
    assert uniformity(found, T, rate, 100_000).is_uniform


def test_a_real_but_small_difference_is_not_worth_a_matrix():
    T = uniform(0.96, 3)
    T[0] = [0.96, 0.04, 0.0]
    found, T, rate = estimate(T, 0.001)
    shape = uniformity(found, T, rate, 100_000)
    assert shape.contradicted
    assert shape.distance < 0.05
    assert shape.is_uniform


def test_one_example_makes_no_pattern():
    T = np.array([[0.96, 0.04], [0.5, 0.5]])
    found, T, rate = estimate(T, 0.01, shares=[0.999, 0.001])
    assert not uniformity(found, T, rate, 500).contradicted
    assert uniformity(found, T, rate, 500_000).contradicted


def test_rows_of_unknown_classes_do_not_count():
    T = np.array([[0.9, 0.1, 0.0], [0.0, 0.9, 0.1], [0.05, 0.05, 0.9]])
    found, T, rate = estimate(T, 0.001, shares=[0.5, 0.5, 0.0])
    broken = found.matrix.copy()
    broken[2] = np.nan
    found = NoiseEstimate(broken, found.clean_rate, found.shares, "likelihood", found.interval, ())
    assert uniformity(found, T, rate, 100_000).clean in (0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_simulated_noise_is_told_apart(seed):
    assert advised(uniform(0.8, 4), seed=seed).uniformity.is_uniform
    found = advised(next_class(0.8, 4), seed=seed).uniformity
    assert not found.is_uniform
    assert (found.label - found.clean) % 4 == 1


def spread(rows, reach=0.03):
    """An estimate of 10 classes with 50 anchors each, of which so many have each of the wrong labels."""
    matrix = np.array(rows, dtype=float) / 50
    np.fill_diagonal(matrix, 1 - matrix.sum(1))
    return estimate(matrix, reach)


def test_what_no_entry_shows_all_together_may():
    """Five of fifty next to none, in ten classes: one of them might be chance."""
    rows = np.roll(5 * np.eye(10), 1, axis=1)
    found, T, rate = spread(rows, reach=0.083)
    shape = uniformity(found, T, rate, 500)
    assert shape.contradicted
    assert shape.together
    assert not shape.is_uniform
    assert (shape.label - shape.clean) % 10 == 1
    by_hand = sum(9 / 5 * 5**2 - 5 for _ in range(10)) - 80
    assert uneven(found, T, np.full(10, 50.0))[0] == pytest.approx(by_hand / np.sqrt(10 * 16 * 0.8))


def test_mistakes_of_the_model_may_be_uneven_too():
    rows = np.roll(5 * np.eye(10), 1, axis=1)
    found, T, rate = spread(rows, reach=0.083)
    wide = Estimate(
        rate.value, rate.value - 0.1, rate.value + 0.08
    )  # nearly all wrong labels may be such mistakes
    assert not uniformity(found, T, wide, 500).contradicted


def test_an_even_spread_by_chance_is_none():
    random = np.random.default_rng(0)
    deviations = []
    for _ in range(60):
        rows = np.array([np.insert(random.multinomial(5, np.full(9, 1 / 9)), i, 0) for i in range(10)])
        found, T, _ = spread(rows)
        deviations.append(uneven(found, T, np.full(10, 50.0))[0])
    assert np.mean(deviations) == pytest.approx(0, abs=0.4)
    assert np.std(deviations) == pytest.approx(1, abs=0.3)
    assert max(deviations) < CLEARLY
