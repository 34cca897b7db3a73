from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softtargets.theory import generalization_loss, limiting_loss, optimal_p, scaled_gamma_p

RATES = st.floats(0.01, 0.99)
KINDS = ("alpha", "beta", "gamma")


@pytest.mark.parametrize("kind", KINDS)
@given(p=RATES, a=RATES, exponent=st.integers(3, 12))
def test_what_is_left_out_is_of_order_log_m_over_m(kind, p, a, exponent):
    classes = 10**exponent
    same = {"alpha": a, "beta": a * a, "gamma": a * p}[kind]
    there = generalization_loss(p, a, classes, kind) - (1 - same) * math.log(classes - 1)
    bound = 2 * (math.log(classes) + abs(math.log(p / (1 - p)))) / (classes - 1) + 1e-13 * math.log(classes)
    assert abs(there - limiting_loss(p, a, kind)) <= bound


@given(a=RATES)
def test_the_best_p_tends_to_its_limit(a):
    assert optimal_p(a, math.inf, "alpha") == a
    assert optimal_p(a, math.inf, "beta") == pytest.approx(a * a, rel=1e-15)
    assert abs(optimal_p(a, 10**9, "beta") - a * a) < 2e-9
    assert optimal_p(a, math.inf, "gamma") == 1


def test_the_gamma_type_tends_to_one_as_slowly_as_it_says():
    for a in (0.1, 0.5, 0.9):
        off = []
        for exponent in (50, 100, 300):
            left = 1 - optimal_p(a, 10.0**exponent, "gamma")
            off.append(left * a * math.log(10.0**exponent) / (1 - a))
        assert abs(off[-1] - 1) < 0.05
        assert (np.diff(np.abs(np.array(off) - 1)) < 0).all()


def test_in_its_own_scale_the_gamma_type_tends_to_a_simple_curve():
    long = math.log(1e300)
    for x in (0.5, 0.9, 1.5, 2.0, 4.0, 20.0):
        assert optimal_p(x / long, 1e300, "gamma") == pytest.approx(scaled_gamma_p(x), abs=0.02)


@pytest.mark.parametrize("kind", ["alpha", "beta"])
def test_the_limiting_loss_is_lowest_at_the_limiting_p(kind):
    p = np.linspace(0.001, 0.999, 999)
    for a in (0.2, 0.6, 0.9):
        assert p[limiting_loss(p, a, kind).argmin()] == pytest.approx(
            optimal_p(a, math.inf, kind), abs=5.1e-4
        )


def test_ends_and_refusals():
    assert limiting_loss(1.0, 0.5, "alpha", limits=True) == math.inf
    assert limiting_loss(0.5, 1.0, "alpha", limits=True) == pytest.approx(math.log(2))
    assert type(scaled_gamma_p(3.0)) is float
    with pytest.raises(ValueError, match="p must lie strictly between 0 and 1, not 1"):
        limiting_loss(1.0, 0.5, "alpha")
    with pytest.raises(ValueError, match="kind must be"):
        limiting_loss(0.5, 0.5, "other")
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"x must be above 0 and finite, not {wrong:g}"):
            scaled_gamma_p(wrong)
