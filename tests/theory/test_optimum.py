from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.losses import LabelSmoothing
from softtargets.theory import (
    gamma_transition,
    generalization_loss,
    landscape,
    matrix_loss,
    mean_field_p,
    optimal_alpha,
    optimal_matrix,
    optimal_p,
    uniform_matrix,
)

from .exact import decimal_argmin, random_stochastic

KINDS = ("alpha", "beta", "gamma")
CLASSES = (2, 3, 10, 100, 1000)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_no_p_has_a_lower_loss_to_twelve_digits(classes, kind):
    rates = [1e-6, 0.01, 0.2, 0.4, 0.5, 0.7, 0.76, 0.95, 1 - 1e-6]
    if kind == "gamma":
        place = gamma_transition(classes).a
        rates += [place - 1e-4, place - 1e-7, place + 1e-7, place + 1e-4]
    for a in rates:
        assert optimal_p(a, classes, kind) == pytest.approx(decimal_argmin(a, classes, kind), abs=1e-12), a


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(a=st.floats(1e-9, 1 - 1e-9), classes=st.integers(2, 5000), p=st.floats(1e-9, 1 - 1e-9))
def test_any_other_p_costs_at_least_as_much(kind, a, classes, p):
    best = optimal_p(a, classes, kind)
    assert 0 < best < 1
    lowest = generalization_loss(best, a, classes, kind)
    assert lowest <= generalization_loss(p, a, classes, kind) + 1e-13
    assert lowest <= math.log(classes) + 1e-13  # at most what knowing nothing costs


@given(a=st.floats(0.001, 0.999), classes=st.integers(2, 10_000))
def test_the_closed_forms_as_printed(a, classes):
    assert optimal_p(a, classes, "alpha") == a
    expected = (1 - 2 * a + a**2 * classes) / (classes - 1)
    assert optimal_p(a, classes, "beta") == pytest.approx(expected, rel=1e-10)
    if a > 1 / classes:
        assert optimal_p(a, classes, "beta") <= a + 1e-15


@pytest.mark.parametrize("classes", CLASSES)
def test_the_gamma_type_is_level_where_it_says(classes):
    place = gamma_transition(classes).a
    a = np.concatenate([place + (1 - place) * np.array([1e-9, 1e-3, 0.2, 0.9]), [1 - 1e-9]])
    p = optimal_p(a, classes, "gamma")
    assert (p > 1 / classes).all()
    assert (np.diff(p) > 0).all()
    left = (1 - a) * (classes * p - 1) / (p * (1 - p))
    right = (a * classes - 1) * np.log((classes - 1) * p / (1 - p))
    # p near 1 is rounded, and 1 - p with it.
    assert left == pytest.approx(right, rel=1e-5)
    assert left[:-1] == pytest.approx(right[:-1], rel=1e-6 if classes == 2 else 1e-9)


def test_two_classes_and_the_gamma_type_by_a_series():
    """With z = 2p - 1, s = 2a - 1 the loss is log 2 - log(1-z^2)/2 - s z artanh z; near s = 1/2 z^2 = 6 (s - 1/2)."""
    for excess in (1e-5, 1e-7, 1e-9, 1e-11):
        a = 0.75 + excess
        z = 2 * optimal_p(a, 2, "gamma") - 1
        assert z == pytest.approx(math.sqrt(12 * (a - 0.75)), rel=10 * excess + 1e-6)
    assert optimal_p([0.1, 0.5, 0.75], 2, "gamma").tolist() == [0.5, 0.5, 0.5]
    p = optimal_p(0.9, 2, "gamma")
    assert generalization_loss(1 - p, 0.9, 2, "gamma") == pytest.approx(
        generalization_loss(p, 0.9, 2, "gamma"), rel=1e-12
    )


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_broadcast_and_numbers_give_a_float(kind):
    assert type(optimal_p(0.8, 10, kind)) is float
    a, classes = np.array([0.1, 0.4, 0.8]), np.array([2, 10, 1000, math.inf])
    found = optimal_p(a[:, None], classes, kind)
    assert found.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert found[i, j] == optimal_p(float(a[i]), float(classes[j]), kind)
    assert optimal_p(torch.tensor([0.5]), 10, kind).shape == (1,)
    assert optimal_p(np.zeros(0), 10, kind).shape == (0,)
    given_a = np.array([0.3])
    optimal_p(given_a, 10, kind)[0] = 9
    assert given_a == 0.3


@pytest.mark.parametrize("classes", [*CLASSES, math.inf])
def test_limits_are_given_where_they_are_asked_for(classes):
    for kind in KINDS:
        assert optimal_p(1.0, classes, kind, limits=True) == 1
        with pytest.raises(ValueError, match="a must lie strictly between 0 and 1, not 1; pass limits=True"):
            optimal_p(1.0, classes, kind)
    assert optimal_p(0.0, classes, "alpha", limits=True) == 0
    assert optimal_p(0.0, classes, "beta", limits=True) == 1 / (classes - 1)
    assert optimal_p(0.0, classes, "gamma", limits=True) == 1 / classes


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_alpha_gives_a_loss_the_best_target(kind, spread):
    classes, a = 5, 0.8
    loss = LabelSmoothing(optimal_alpha(a, classes, kind, spread), spread=spread)
    logits = torch.randn(1, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.from_numpy(uniform_matrix(optimal_p(a, classes, kind), classes))
    expected = -(target[2] * logits.log_softmax(1)[0]).sum()
    assert loss(logits, torch.tensor([2])).item() == pytest.approx(expected.item(), rel=1e-12)


def random_noise(generator, classes):
    """Noise of many kinds: mostly right, any, and with entries that are 0."""
    T = random_stochastic(generator, classes, concentration=0.3)
    return [T, 0.7 * np.eye(classes) + 0.3 * T, 0.8 * np.eye(classes) + 0.2 * np.roll(np.eye(classes), 1, 1)]


@pytest.mark.parametrize("kind", ["alpha", "beta"])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_the_best_matrix_beats_a_thousand_others(classes, kind):
    generator = np.random.default_rng(classes)
    for T in random_noise(generator, classes):
        for prior in (None, generator.dirichlet(np.ones(classes))):
            best = optimal_matrix(T, kind, prior)
            assert best.sum(1) == pytest.approx(np.ones(classes), rel=1e-12)
            lowest = matrix_loss(best, T, kind, prior)
            far = random_stochastic(generator, classes, count=1000)
            near = 0.97 * best + 0.03 * far
            assert (matrix_loss(far, T, kind, prior) > lowest).all()
            assert (matrix_loss(near, T, kind, prior) > lowest).all()


@pytest.mark.parametrize("kind", ["alpha", "beta"])
def test_the_best_matrix_is_what_counting_finds(kind):
    """Draw examples: for each label that is trained on, how often each test label comes with it."""
    generator = np.random.default_rng(4)
    T, prior, examples = (
        np.array([[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]),
        np.array([0.5, 0.3, 0.2]),
        10**6,
    )
    clean = generator.choice(3, size=examples, p=prior)

    def noisy():
        return (generator.random(examples)[:, None] > T.cumsum(1)[clean]).sum(1)

    trained, tested = noisy(), clean if kind == "alpha" else noisy()
    counts = np.zeros((3, 3))
    np.add.at(counts, (trained, tested), 1)
    counts /= counts.sum(1, keepdims=True)
    assert optimal_matrix(T, kind, prior) == pytest.approx(counts, abs=0.005)


@pytest.mark.parametrize("kind", ["alpha", "beta"])
@pytest.mark.parametrize("classes", CLASSES)
def test_uniform_noise_has_the_best_p_on_the_diagonal(classes, kind):
    best = optimal_matrix(uniform_matrix(0.8, classes), kind)
    assert np.abs(best - uniform_matrix(optimal_p(0.8, classes, kind), classes)).max() < 1e-14


def test_symmetric_noise_has_the_simple_forms():
    T = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])
    assert optimal_matrix(T, "alpha") == pytest.approx(T, abs=1e-15)
    assert optimal_matrix(T, "beta") == pytest.approx(T @ T.T, abs=1e-15)


def test_stacks_and_labels_that_never_occur():
    generator = np.random.default_rng(5)
    T = random_stochastic(generator, 3, count=4)
    for kind in ("alpha", "beta"):
        assert optimal_matrix(T, kind) == pytest.approx(np.array([optimal_matrix(one, kind) for one in T]))
    never = [[1.0, 0.0], [1.0, 0.0]]
    assert optimal_matrix(never, "alpha").tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert optimal_matrix(never, "beta").tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_the_gamma_type_has_no_matrix_because_one_class_for_all_costs_nothing():
    one = np.zeros((4, 4))
    one[:, 2] = 1
    assert matrix_loss(one, uniform_matrix(0.6, 4), "gamma") == 0
    with pytest.raises(
        ValueError, match=r"kind 'gamma' has no useful optimal matrix.* use mean_field_p\(T, 'gamma'\)"
    ):
        optimal_matrix(uniform_matrix(0.6, 4), "gamma")


def test_what_is_refused():
    with pytest.raises(ValueError, match="classes must be whole numbers from 2, not 1"):
        optimal_p(0.5, 1, "alpha")
    with pytest.raises(ValueError, match="kind must be"):
        optimal_p(0.5, 10, "a")
    with pytest.raises(ValueError, match="a must lie strictly between 0 and 1, not nan"):
        optimal_p(math.nan, 10, "gamma")
    with pytest.raises(ValueError, match="spread must be 'all' or 'others', not 'K'"):
        optimal_alpha(0.5, 10, "alpha", "K")
    with pytest.raises(ValueError, match="T must have rows that sum to 1"):
        optimal_matrix([[0.5, 0.4], [0.5, 0.5]], "alpha")


@pytest.mark.parametrize(("name", "kind"), [("clean", "alpha"), ("noisy", "beta"), ("smoothed", "gamma")])
def test_types_have_names_by_their_test_labels(name, kind):
    assert optimal_alpha(0.8, 10, name) == optimal_alpha(0.8, 10, kind)
    T = uniform_matrix(0.8, 4)
    if kind != "gamma":
        assert np.array_equal(optimal_matrix(T, name), optimal_matrix(T, kind))
    assert mean_field_p(T, name) == mean_field_p(T, kind)
    assert landscape(3, name).kind == kind


def test_a_misspelt_name_of_a_type_gets_the_nearest():
    with pytest.raises(ValueError, match=r"not 'noizy' \(did you mean 'noisy'\?\)"):
        optimal_alpha(0.8, 10, "noizy")
