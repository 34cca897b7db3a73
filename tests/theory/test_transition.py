from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

from softtargets.theory import gamma_transition, generalization_loss, optimal_p, transition_asymptote
from softtargets.theory.transition import clean_rate_at, p_at, rising, upper_minimum

CLASSES = (3, 4, 10, 100, 1000)


def lowest_beyond(a, classes):
    """The lowest loss at p clearly above 1/M, by a search in the logit."""

    def loss(t):
        p = 1 / (1 + (classes - 1) * np.exp(-t))
        return generalization_loss(p, a, classes, "gamma")

    grid = np.linspace(0.6 * math.log(classes - 1) + 0.1, 3 * math.log(classes) + 8, 2000)
    start = grid[loss(grid).argmin()]
    found = minimize_scalar(
        loss, bounds=(start - 0.1, start + 0.1), method="bounded", options={"xatol": 1e-9}
    )
    return found.fun, 1 / (1 + (classes - 1) * math.exp(-found.x))


@pytest.mark.parametrize("classes", CLASSES)
def test_the_place_is_where_learning_is_as_good_as_not(classes):
    """Located once more: a search for the minimum inside a search for the a that makes it log M."""
    found = gamma_transition(classes)
    place = brentq(
        lambda a: lowest_beyond(a, classes)[0] - math.log(classes),
        found.a - 5e-4,
        found.a + 5e-3,
        xtol=1e-12,
    )
    assert found.a == pytest.approx(place, abs=1e-10)
    assert found.high == pytest.approx(lowest_beyond(place, classes)[1], abs=1e-6)
    assert found.low == 1 / classes
    assert found.jump == found.high - 1 / classes > 0.1
    assert 1 / classes < found.appears < found.a < found.vanishes == (classes + 1) / (2 * classes)


@pytest.mark.parametrize("classes", CLASSES)
def test_the_best_p_jumps_there(classes):
    found = gamma_transition(classes)
    assert optimal_p(found.a - 1e-6, classes, "gamma") == 1 / classes
    assert optimal_p(found.a + 1e-6, classes, "gamma") == pytest.approx(found.high, abs=1e-3)
    assert optimal_p(np.nextafter(found.a, 1), classes, "gamma") == pytest.approx(found.high, abs=1e-12)


@pytest.mark.parametrize("classes", CLASSES)
def test_minima_appear_and_vanish_where_it_says(classes):
    def valleys(a):
        t = np.linspace(-2, 3 * math.log(classes) + 8, 200_001)
        loss = generalization_loss(1 / (1 + (classes - 1) * np.exp(-t)), a, classes, "gamma")
        inner = (loss[1:-1] < loss[:-2]) & (loss[1:-1] < loss[2:])
        return t[1:-1][inner]

    found = gamma_transition(classes)
    step = 1e-4
    assert np.abs(valleys(found.appears - step)).max() < 1e-3
    assert valleys(found.appears + step).max() > 0.5
    assert np.abs(valleys(found.vanishes - step)).min() < 1e-3
    assert np.abs(valleys(found.vanishes + 10 * step)).min() > 2e-3


def test_two_classes_only_bend():
    found = gamma_transition(2)
    assert (found.a, found.low, found.high, found.jump) == (0.75, 0.5, 0.5, 0)
    assert optimal_p(0.75 + 1e-8, 2, "gamma") - 0.5 == pytest.approx(math.sqrt(3e-8), rel=1e-3)


def test_many_classes_approach_the_asymptote():
    off = []
    for exponent in (6, 12, 30, 100, 300):
        classes = 10.0**exponent
        found, (a, _) = gamma_transition(classes), transition_asymptote(classes)
        long = math.log(classes)
        scale = (math.log(long) / long) ** 2
        off.append((found.a * long - 1, found.high * long / 2 - 1, abs(a / found.a - 1) / scale))
    place, height, rest = np.array(off).T
    assert (np.diff(place) < 0).all()
    assert (np.diff(height) < 0).all()
    assert place[-1] < 0.01
    assert height[-1] < 0.01
    assert (rest < 1).all()
    limit = gamma_transition(math.inf)
    assert (limit.a, limit.low, limit.high, limit.vanishes) == (0, 0, 0, 0.5)


def test_what_is_refused():
    with pytest.raises(ValueError, match="classes must be whole numbers from 2, not 1"):
        gamma_transition(1)
    with pytest.raises(ValueError, match=r"classes must be one number here, not an array of shape \(2,\)"):
        gamma_transition([2, 3])
    with pytest.raises(ValueError, match="classes must be at least 3 here, not 2"):
        transition_asymptote(2)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
@pytest.mark.parametrize("t", [-2.0, 0.3, 1.0, 4.0, 9.0])
def test_the_loss_is_level_where_it_says(classes, t):
    a = clean_rate_at(t, classes)
    assert 1 / classes < a < 1

    def loss(shift):
        return generalization_loss(p_at(np.array(t + shift), np.array(classes)), a, classes, "gamma")

    step = 1e-4
    slope = (loss(step) - loss(-step)) / (2 * step)
    assert slope == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_one_over_m_is_level_for_any_a(classes):
    for a in (0.01, 0.3, 0.99):
        near = 1 / classes + np.array([-1e-6, 1e-6])
        low, high = generalization_loss(near, a, classes, "gamma")
        middle = generalization_loss(1 / classes, a, classes, "gamma")
        assert middle == pytest.approx(math.log(classes), rel=1e-15)
        assert (high - low) / 2e-6 == pytest.approx(0, abs=1e-8 * classes)


@pytest.mark.parametrize("classes", [2, 3, 10, 1000])
def test_the_chord_falls_and_then_rises(classes):
    t = np.linspace(0.01, 30, 20_000)
    chord = np.array([rising(x, classes) / x for x in t])
    lowest = int(chord.argmin())
    assert (np.diff(chord[: lowest + 1]) < 0).all()
    assert (np.diff(chord[lowest:]) > 0).all()
    left = np.array([rising(x, classes) / x for x in -t])
    assert (left > classes).all()


@pytest.mark.parametrize("classes", [2, 3, 10, 1000, 10**6])
def test_newton_comes_back_to_where_it_started(classes):
    start = np.array([3.0, 5.0, 8.0, 12.0, 20.0, 30.0]) + math.log(classes - 1)
    a = np.array([clean_rate_at(t, classes) for t in start])
    found = upper_minimum(a, np.full_like(a, classes))
    # a near 1 is rounded: what that does to t is no fault of Newton's.
    assert found == pytest.approx(start, abs=float(1e-14 / (1 - a).min()) + 1e-10)
    assert found[:3] == pytest.approx(start[:3], rel=1e-9)


def test_close_to_the_bend_of_two_classes():
    for t in (1e-3, 1e-5, 1e-6):
        a = clean_rate_at(t, 2)
        assert float(upper_minimum(np.array(a), np.array(2.0))) == pytest.approx(t, abs=2e-16 / t * 10)
