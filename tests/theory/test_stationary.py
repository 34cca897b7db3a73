from __future__ import annotations

import math

import numpy as np
import pytest

from softtargets.theory import generalization_loss
from softtargets.theory.stationary import clean_rate_at, p_at, rising, upper_minimum


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
