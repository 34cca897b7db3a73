from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.theory import (
    averaging_loss,
    averaging_matrix_loss,
    generalization_loss,
    matrix_loss,
    uniform_matrix,
)

from .exact import decimal_loss, looped_loss, random_stochastic

KINDS = ("alpha", "beta", "gamma")
RATES = st.floats(0.001, 0.999)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_one_p_is_the_sum_over_all_that_may_happen(classes, kind):
    for p, a in ((0.9, 0.8), (0.3, 0.95), (0.05, 0.02), (0.999, 0.5)):
        S, T = uniform_matrix(p, classes).tolist(), uniform_matrix(a, classes).tolist()
        expected = looped_loss(S, T, kind)
        assert generalization_loss(p, a, classes, kind) == pytest.approx(expected, rel=1e-12)
        assert matrix_loss(S, T, kind) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_any_matrices_and_frequencies_are_the_sum_over_all_that_may_happen(kind):
    generator = np.random.default_rng(0)
    for classes in (2, 3, 6):
        S, T = random_stochastic(generator, classes), random_stochastic(generator, classes)
        prior = generator.dirichlet(np.ones(classes))
        assert matrix_loss(S, T, kind) == pytest.approx(looped_loss(S, T, kind), rel=1e-12)
        assert matrix_loss(S, T, kind, prior) == pytest.approx(looped_loss(S, T, kind, prior), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [100, 1000])
def test_many_classes(classes, kind):
    S, T = uniform_matrix(0.9, classes), uniform_matrix(0.7, classes)
    assert matrix_loss(S, T, kind) == pytest.approx(generalization_loss(0.9, 0.7, classes, kind), rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(
    p=st.floats(1e-12, 1 - 1e-12), a=st.floats(1e-12, 1 - 1e-12), classes=st.sampled_from([2, 3, 10, 1000])
)
def test_close_to_the_ends_no_digit_is_lost(kind, p, a, classes):
    expected = float(decimal_loss(p, a, classes, kind))
    assert generalization_loss(p, a, classes, kind) == pytest.approx(expected, rel=1e-13)


@given(p=RATES, a=RATES)
def test_equations_7_to_9_as_printed(p, a):
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    alpha = -a * math.log(p) - (1 - a) * math.log(1 - p)
    beta = -(a**2) * math.log(p) - 2 * a * (1 - a) * math.log(1 - p) - (1 - a) ** 2 * math.log(p)
    gamma = a * entropy - (1 - a) * (p * math.log(1 - p) + (1 - p) * math.log(p))
    for kind, expected in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        assert generalization_loss(p, a, 2, kind) == pytest.approx(expected, rel=1e-11)


@given(p=RATES, a=RATES, M=st.integers(2, 2000))
def test_equations_11_14_and_15_as_printed(p, a, M):
    rest = math.log((1 - p) / (M - 1))
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    alpha = -a * math.log(p) - (1 - a) * rest
    beta = (
        -(a**2) * math.log(p)
        - 2 * a * (1 - a) * rest
        - (1 - a) ** 2 / (M - 1) * math.log(p)
        - (1 - a) ** 2 * (M - 2) / (M - 1) * rest
    )
    gamma = a * (entropy + (1 - p) * math.log(M - 1)) - (1 - a) * (
        p * rest + (1 - p) * (M - 2) / (M - 1) * rest + (1 - p) / (M - 1) * math.log(p)
    )
    for kind, expected in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        assert generalization_loss(p, a, M, kind) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_a_net_that_knows_its_labels_by_heart_measures_it(kind):
    """Draw labels, look up the smoothed targets, and measure the cross-entropy that `kind` stands for."""
    generator = np.random.default_rng(1)
    examples, classes, a, p = 400_000, 5, 0.7, 0.8
    clean = generator.integers(classes, size=examples)

    def corrupted():
        wrong = (clean + generator.integers(1, classes, size=examples)) % classes
        return np.where(generator.random(examples) < a, clean, wrong)

    logits = torch.from_numpy(np.log(uniform_matrix(p, classes)[corrupted()]))
    tested = torch.from_numpy(corrupted() if kind == "beta" else clean)
    # torch spreads over all classes: alpha = (1 - p) M / (M - 1).
    smoothing = (1 - p) * classes / (classes - 1) if kind == "gamma" else 0.0
    measured = torch.nn.functional.cross_entropy(logits, tested, label_smoothing=smoothing)
    assert generalization_loss(p, a, classes, kind) == pytest.approx(float(measured), abs=0.01)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_give_a_float_and_arrays_broadcast(kind):
    assert type(generalization_loss(0.9, 0.8, 10, kind)) is float
    p, a, classes = np.array([0.2, 0.9]), np.array([0.1, 0.5, 0.8]), np.array([2, 10, 1000, 5])
    found = generalization_loss(p[:, None, None], a[:, None], classes, kind)
    assert found.shape == (2, 3, 4)
    for i, j, k in np.ndindex(2, 3, 4):
        expected = generalization_loss(float(p[i]), float(a[j]), int(classes[k]), kind)
        assert found[i, j, k] == pytest.approx(expected, rel=1e-15)
    tensor = torch.tensor([0.2, 0.9], dtype=torch.bfloat16, requires_grad=True)
    assert generalization_loss(tensor, 0.5, 10, kind) == pytest.approx(
        generalization_loss(tensor.tolist(), 0.5, 10, kind)
    )
    assert generalization_loss(np.zeros(0), 0.5, 10, kind).shape == (0,)


def test_stacks_of_matrices():
    generator = np.random.default_rng(2)
    S, T = random_stochastic(generator, 3, count=4), random_stochastic(generator, 3)
    for kind in KINDS:
        found = matrix_loss(S, T, kind)
        assert found == pytest.approx([matrix_loss(one, T, kind) for one in S], rel=1e-14)
        assert matrix_loss(S[:, None], S, kind).shape == (4, 4)


def test_renaming_classes_changes_nothing():
    generator = np.random.default_rng(3)
    S, T, order = random_stochastic(generator, 5), random_stochastic(generator, 5), generator.permutation(5)
    prior = generator.dirichlet(np.ones(5))
    for kind in KINDS:
        there = matrix_loss(S[np.ix_(order, order)], T[np.ix_(order, order)], kind, prior[order])
        assert there == pytest.approx(matrix_loss(S, T, kind, prior), rel=1e-13)


def test_limits_are_given_where_they_are_asked_for():
    near = {"limits": True}
    assert generalization_loss(1.0, 0.9, 10, "alpha", **near) == math.inf
    assert generalization_loss(0.9, 1.0, 10, "alpha", **near) == pytest.approx(-math.log(0.9), rel=1e-15)
    assert generalization_loss(0.0, 0.5, 10, "beta", **near) == math.inf
    for kind in KINDS:
        assert generalization_loss(1.0, 1.0, 10, kind, **near) == 0
        assert generalization_loss(0.7, 1.0, 10, kind, **near) == pytest.approx(
            generalization_loss(0.7, 1 - 1e-15, 10, kind), rel=1e-12
        )
    assert generalization_loss(0.0, 0.0, 2, "alpha", **near) == 0  # always wrong, and known to be
    assert generalization_loss(0.0, 1.0, 10, "gamma", **near) == pytest.approx(math.log(9))
    assert matrix_loss(np.eye(3), np.eye(3), "alpha") == 0
    assert matrix_loss(np.eye(3), uniform_matrix(0.9, 3), "beta") == math.inf


@pytest.mark.parametrize("wrong", [0, 1, -0.1, 1.5, math.nan, math.inf])
def test_rates_outside_are_refused(wrong):
    with pytest.raises(ValueError, match=rf"^p must lie strictly between 0 and 1, not {wrong:g}; "):
        generalization_loss(wrong, 0.5, 10, "alpha")
    with pytest.raises(
        ValueError, match=rf"^a must lie strictly between 0 and 1, but at index 1 it is {wrong:g}; "
    ):
        generalization_loss(0.5, [0.5, wrong], 10, "alpha")
    if wrong not in (0, 1):
        with pytest.raises(
            ValueError, match=rf"^p must lie between 0 and 1, not {wrong:g}; give it as a prob"
        ):
            generalization_loss(wrong, 0.5, 10, "alpha", limits=True)


def test_what_else_is_refused():
    with pytest.raises(ValueError, match=r"kind must be 'alpha', 'beta' or 'gamma', not 'delta'"):
        generalization_loss(0.5, 0.5, 10, "delta")
    with pytest.raises(ValueError, match=r"not \['alpha'\]"):
        generalization_loss(0.5, 0.5, 10, ["alpha"])
    for wrong in (1, 0, -3, 2.5, math.nan):
        with pytest.raises(
            ValueError, match=rf"classes must be whole numbers from 2, not {wrong:g}: labels can"
        ):
            generalization_loss(0.5, 0.5, wrong, "alpha")
    with pytest.raises(ValueError, match="not inf: see limiting_loss"):
        generalization_loss(0.5, 0.5, math.inf, "alpha")
    with pytest.raises(
        ValueError, match=r"p, a and classes must fit together, but have shapes \(2,\), \(3,\) and"
    ):
        generalization_loss(np.full(2, 0.5), np.full(3, 0.5), 10, "alpha")
    with pytest.raises(ValueError, match="p must be a number or an array of numbers, not True"):
        generalization_loss(True, 0.5, 10, "alpha")
    with pytest.raises(ValueError, match=r"p must be a number or an array of numbers, not '0.5'"):
        generalization_loss("0.5", 0.5, 10, "alpha")
    with pytest.raises(ValueError, match="not a ragged list"):
        generalization_loss([0.5, [0.5]], 0.5, 10, "alpha")


def test_matrices_that_are_none_are_refused():
    good = np.eye(2)
    with pytest.raises(
        ValueError, match=r"T must have rows that sum to 1, but row 1 sums to 1.1; divide each row"
    ):
        matrix_loss(good, [[1.0, 0.0], [0.5, 0.6]], "alpha")
    with pytest.raises(ValueError, match=r"row 0 sums to 1.2; its columns do: pass the transpose"):
        matrix_loss(good, [[0.9, 0.3], [0.1, 0.7]], "alpha")
    with pytest.raises(
        ValueError, match=r"S must hold probabilities, at least 0, but row 1, column 0 has -0.5"
    ):
        matrix_loss([[1.0, 0.0], [-0.5, 1.5]], good, "alpha")
    with pytest.raises(ValueError, match="row 0, column 1 has nan"):
        matrix_loss([[1.0, math.nan], [0.5, 0.5]], good, "alpha")
    for shape in ((2, 3), (1, 1), (0, 0), (4,)):
        with pytest.raises(
            ValueError, match=r"T must be a square matrix .* at least two classes, not of shape"
        ):
            matrix_loss(good, np.ones(shape), "alpha")
    with pytest.raises(ValueError, match="S has 2 and T has 3"):
        matrix_loss(good, np.eye(3), "alpha")
    with pytest.raises(ValueError, match=r"prior must sum to 1, not 0.9; divide it by its sum"):
        matrix_loss(good, good, "alpha", prior=[0.5, 0.4])
    with pytest.raises(ValueError, match=r"one probability for each of the 2 classes, not shape \(3,\)"):
        matrix_loss(good, good, "alpha", prior=[0.5, 0.3, 0.2])
    with pytest.raises(ValueError, match="prior must hold probabilities, at least 0, but class 1 has -1"):
        matrix_loss(good, good, "alpha", prior=[2.0, -1.0])


def test_rows_that_add_up_to_nearly_one_are_made_to():
    single = np.full((3, 3), 1 / 3, dtype=np.float32) * np.float32(1.00001)
    assert matrix_loss(single, np.eye(3), "alpha") == pytest.approx(math.log(3), rel=1e-7)


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
