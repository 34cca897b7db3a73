from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softtargets.theory import averaging_loss, averaging_matrix_loss, generalization_loss, uniform_matrix

KINDS = ("alpha", "beta", "gamma")
RATES = st.floats(0.001, 0.999)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_it_is_the_cross_entropy_of_the_mean_target(classes, kind):
    p, a = 0.9, 0.7
    output = (uniform_matrix(a, classes) @ uniform_matrix(p, classes))[0]
    target = uniform_matrix({"alpha": 1.0, "beta": a, "gamma": p}[kind], classes)[0]
    expected = -sum(t * math.log(f) for t, f in zip(target, output, strict=True))
    assert averaging_loss(p, a, classes, kind) == pytest.approx(expected, rel=1e-12)


@given(p=RATES, a=RATES, classes=st.integers(2, 1000), kind=st.sampled_from(KINDS))
def test_to_learn_by_heart_never_costs_less(p, a, classes, kind):
    assert averaging_loss(p, a, classes, kind) <= generalization_loss(p, a, classes, kind) + 1e-12


def test_on_clean_labels_less_smoothing_is_better_all_the_way():
    p = np.linspace(0.1, 0.999, 50)
    assert (np.diff(averaging_loss(p, 0.6, 10, "alpha")) < 0).all()
    assert averaging_loss(1.0, 0.6, 10, "alpha", limits=True) == pytest.approx(-math.log(0.6))
    with pytest.raises(ValueError, match="p must lie strictly between 0 and 1, not 1"):
        averaging_loss(1.0, 0.6, 10, "alpha")


@given(p=RATES, a=RATES, classes=st.integers(2, 6), kind=st.sampled_from(KINDS[:2]))
def test_matrices_of_uniform_noise_and_smoothing_give_the_same(p, a, classes, kind):
    T, shares = uniform_matrix(a, classes), np.full(classes, 1 / classes)
    expected = averaging_loss(p, a, classes, kind)
    assert averaging_matrix_loss(p, T, kind, shares) == pytest.approx(expected)
    assert averaging_matrix_loss(uniform_matrix(p, classes), T, kind, shares) == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS[:2])
def test_any_noise_and_smoothing_by_hand(kind):
    random = np.random.default_rng(0)
    T, S = (random.dirichlet(np.ones(3), 3) for _ in range(2))
    shares = random.dirichlet(np.ones(3))
    expected = 0.0
    for i in range(3):
        for c in range(3):
            output = sum(T[i, k] * S[k, c] for k in range(3))
            tested = T[i, c] if kind == "beta" else float(i == c)
            expected -= shares[i] * tested * math.log(output)
    assert averaging_matrix_loss(S, T, kind, shares) == pytest.approx(expected)


def test_smoothed_test_labels_have_no_loss_of_matrices():
    with pytest.raises(ValueError, match="kind must be 'alpha' or 'beta', not 'gamma'"):
        averaging_matrix_loss(0.9, np.eye(2), "gamma", np.full(2, 0.5))
