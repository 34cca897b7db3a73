from __future__ import annotations

import math

import numpy as np
import pytest

from softtargets.selection import aurc_difference, risk_coverage
from softtargets.selection.intervals import (
    accuracy_intervals,
    area_intervals,
    generalised_influence,
    influence,
)


def drawn(n, seed=0, digits=9):
    random = np.random.default_rng(seed)
    confidence = random.random(n).round(digits)
    return confidence, (random.random(n) > 0.6 * (1 - confidence)).astype(float)


@pytest.mark.parametrize("digits", [9, 1])
@pytest.mark.parametrize(("area", "of"), [("aurc", influence), ("augrc", generalised_influence)])
def test_an_influence_is_what_leaving_an_example_out_changes(area, of, digits):
    confidence, correct = drawn(3000, digits=digits)
    curve = risk_coverage(confidence, correct)
    found = of(curve)
    assert found.sum() == pytest.approx(0, abs=1e-8)
    for i in (0, 17, 400, 2999, int(confidence.argmin())):
        without = risk_coverage(np.delete(confidence, i), np.delete(correct, i))
        assert 2999 * (getattr(curve, area) - getattr(without, area)) == pytest.approx(found[i], abs=0.02)


def test_the_standard_error_is_that_of_a_bootstrap():
    confidence, correct = drawn(1000)
    random = np.random.default_rng(1)
    drawings = random.integers(0, 1000, (400, 1000))
    boots = [risk_coverage(confidence[some], correct[some]) for some in drawings]
    found = area_intervals(risk_coverage(confidence, correct))
    for name in ("aurc", "excess_aurc", "augrc"):
        values = [getattr(one, name) for one in boots]
        low, high = found[name]
        assert math.log(high / low) / 2 / 1.96 == pytest.approx(np.std(values) / np.mean(values), rel=0.15)


def truth(name):
    """Of confidence u and mistakes with probability 0.6 (1 - u), by integration: risk(c) = 0.3 c."""
    rate = 0.3
    least = rate + (1 - rate) * math.log(1 - rate)
    return {"aurc": 0.15, "excess_aurc": 0.15 - least, "augrc": 0.1}[name]


def test_intervals_hold_what_they_promise():
    held = dict.fromkeys(("aurc", "excess_aurc", "augrc", 0.5, 0.9), 0)
    for seed in range(200):
        curve = risk_coverage(*drawn(400, seed))
        for name, (low, high) in area_intervals(curve).items():
            held[name] += low <= truth(name) <= high
        lows, highs = accuracy_intervals(curve, np.array([0.5, 0.9]))
        for coverage, low, high in zip((0.5, 0.9), lows, highs, strict=True):
            held[coverage] += low <= 1 - 0.3 * coverage <= high
    assert all(0.9 <= count / 200 <= 0.99 for count in held.values()), held


@pytest.mark.parametrize("n", [1, 2, 100])
@pytest.mark.parametrize("value", [0, 1])
def test_intervals_without_scatter_have_a_width_and_hold_the_value(n, value):
    curve = risk_coverage(np.linspace(0, 1, n), np.full(n, value))
    for name, (low, high) in area_intervals(curve).items():
        assert low <= getattr(curve, name) <= high
        assert 0 < high - low < 1 or n < 3, name
    low, high = accuracy_intervals(curve, np.array([0.5, 1.0]))
    assert (low <= curve.accuracy).all()
    assert (high >= curve.accuracy).all()
    assert (high > low).all()


def test_at_full_coverage_the_interval_is_wilsons():
    curve = risk_coverage(*drawn(500))
    n, p, z = 500, curve.accuracy, 1.959964
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = accuracy_intervals(curve, np.array([1.0]))
    assert [low[0], high[0]] == pytest.approx(
        [x / (1 + z * z / n) for x in (middle - half, middle + half)], rel=1e-6
    )


def test_that_a_threshold_is_an_estimate_widens_the_interval():
    random = np.random.default_rng(4)
    confidence = random.random(2000)
    correct = (random.random(2000) > np.where(confidence < 0.25, 0.9, 0.02)).astype(float)
    curve = risk_coverage(confidence, correct)
    drawings = random.integers(0, 2000, (400, 2000))
    spread = np.std([risk_coverage(confidence[some], correct[some]).accuracy_at(0.8) for some in drawings])
    low, high = accuracy_intervals(curve, np.array([0.8]))
    assert (high - low)[0] / 2 / 1.96 == pytest.approx(spread, rel=0.15)
    binomial = np.sqrt(curve.accuracy_at(0.8) * (1 - curve.accuracy_at(0.8)) / 1600)
    assert spread > 1.4 * binomial


def test_differences_are_paired():
    confidence, correct = drawn(2000)
    random = np.random.default_rng(5)
    a, b = (
        risk_coverage(confidence, correct),
        risk_coverage(confidence + random.normal(0, 0.02, 2000), correct),
    )
    value, low, high = aurc_difference(a, b)
    assert value == pytest.approx(b.aurc - a.aurc)
    alone = area_intervals(a)["aurc"]
    assert high - low < (alone[1] - alone[0]) / 3
    again = risk_coverage(*drawn(2000, seed=9))
    assert aurc_difference(a, again)[2] - aurc_difference(a, again)[1] > alone[1] - alone[0]


def test_a_model_does_not_differ_from_itself():
    a = risk_coverage(*drawn(300))
    value, low, high = aurc_difference(a, a)
    assert value == 0
    assert low < 0 < high < 0.02
    assert aurc_difference(risk_coverage([0.1], [1]), risk_coverage([0.2], [0])) == (1, -1, 1)
    with pytest.raises(ValueError, match="same examples, not 300 and 1"):
        aurc_difference(a, risk_coverage([0.1], [1]))


@pytest.mark.parametrize("n", [5, 20])
def test_the_area_of_a_few_examples_may_be_less_than_their_mistakes_allow(n):
    """Of the least confident fifth 40 % are wrong, and no others: 5 examples with one mistake have 0.04 at least."""
    truth = 0.4 * (0.2 + 0.8 * math.log(0.8))
    random, hits = np.random.default_rng(0), 0
    for _ in range(200):
        confidence = random.random(n)
        curve = risk_coverage(confidence, (confidence > 0.2) | (random.random(n) > 0.4))
        low, high = area_intervals(curve)["aurc"]
        assert low <= curve.aurc <= high
        hits += low <= truth <= high
    # Of 200 intervals that hold it 9 times in 10, fewer than 170 do about once in a hundred times.
    assert hits >= 170


@pytest.mark.parametrize(
    ("rate", "sharpness", "n"), [(0.4, 0.5, 5), (0.4, 1.5, 10), (0.1, 6.0, 20), (0.1, 0.0, 5)]
)
def test_the_excess_of_a_few_examples_in_the_best_order_may_be_more(rate, sharpness, n):
    """A prediction of confidence u is wrong with probability r (a + 1) (1 - u)^a: the AURC is r / (a + 1)."""
    truth = rate / (sharpness + 1) - rate - (1 - rate) * math.log(1 - rate)
    random, hits = np.random.default_rng(0), 0
    for _ in range(200):
        u = random.random(n)
        wrong = random.random(n) < rate * (sharpness + 1) * (1 - u) ** sharpness
        curve = risk_coverage(u, ~wrong)
        low, high = area_intervals(curve)["excess_aurc"]
        assert low <= curve.excess_aurc <= high
        hits += low <= truth <= high
    assert hits >= 170


@pytest.mark.parametrize("n", [20, 200, 2000])
def test_an_area_may_be_what_one_mistake_more_at_an_average_place_makes_it(n):
    """The interval of one mistake, the least confident prediction, holds areas of two: the other one in the middle."""
    confidence = np.arange(n, 0, -1)
    one = risk_coverage(confidence, confidence > 1)
    two = risk_coverage(confidence, (confidence > 1) & (confidence != n // 2))
    for name, (_, high) in area_intervals(one).items():
        assert getattr(one, name) < getattr(two, name) < high
