from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from softtargets.noise import (
    CORRUPTIONS,
    TRANSITIONS,
    class_conditional,
    class_conditional_transitions,
    observed_transitions,
    pair,
    symmetric,
    symmetric_transitions,
)

# Those that take a rate and nothing else.
RATED = {"symmetric": symmetric, "pair": pair}


def labels_of(classes, count=20_000):
    return np.arange(count, dtype=np.int64) % classes


@pytest.mark.parametrize("corrupt", RATED.values())
@pytest.mark.parametrize("rate", [0.1, 0.4, 0.8])
def test_the_share_of_changed_labels_is_the_rate(corrupt, rate):
    clean = labels_of(10)
    share = (corrupt(clean, rate, 10, seed=0) != clean).mean()
    assert abs(share - rate) < 4 * math.sqrt(rate * (1 - rate) / len(clean))


@pytest.mark.parametrize("corrupt", RATED.values())
def test_the_rate_holds_in_every_class(corrupt):
    clean = labels_of(4)
    noisy = corrupt(clean, 0.3, 4, seed=1)
    for label in range(4):
        share = (noisy[clean == label] != label).mean()
        assert abs(share - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 5000)


@pytest.mark.parametrize("corrupt", RATED.values())
def test_a_rate_of_nothing_changes_nothing_and_of_one_everything(corrupt):
    clean = labels_of(7, 1000)
    assert np.array_equal(corrupt(clean, 0.0, 7, seed=0), clean)
    assert not (corrupt(clean, 1.0, 7, seed=0) == clean).any()


@pytest.mark.parametrize("corrupt", RATED.values())
@settings(max_examples=40, deadline=None)
@given(classes=st.integers(2, 200), rate=st.floats(0, 1), seed=st.integers(0, 2**63 - 1))
def test_noisy_labels_are_labels(corrupt, classes, rate, seed):
    clean = labels_of(classes, 300)
    before = clean.copy()
    noisy = corrupt(clean, rate, classes, seed)
    assert (noisy.dtype, noisy.shape) == (np.int64, clean.shape)
    assert noisy.min() >= 0
    assert noisy.max() < classes
    assert np.array_equal(clean, before)


@pytest.mark.parametrize("corrupt", RATED.values())
def test_the_same_seed_gives_the_same_labels_and_another_seed_others(corrupt):
    clean = labels_of(10, 500)
    first, again, other = (corrupt(clean, 0.5, 10, seed) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("corrupt", RATED.values())
def test_the_global_generator_is_neither_used_nor_moved(corrupt):
    np.random.seed(0)
    first = corrupt(labels_of(10, 50), 0.5, 10, seed=3)
    state = np.random.get_state()[1].tolist()
    np.random.seed(1)
    assert np.array_equal(first, corrupt(labels_of(10, 50), 0.5, 10, seed=3))
    np.random.seed(0)
    assert np.random.get_state()[1].tolist() == state


@pytest.mark.parametrize("classes", [3, 10])
def test_symmetric_noise_is_uniform_over_the_other_classes(classes):
    clean = labels_of(classes, 30_000)
    noisy = symmetric(clean, 1.0, classes, seed=5)
    for label in range(classes):
        counts = np.bincount(noisy[clean == label], minlength=classes)
        assert counts[label] == 0
        assert chisquare(np.delete(counts, label)).pvalue > 0.001


def test_whether_a_label_changes_does_not_decide_to_what():
    clean = np.zeros(30_000, np.int64)
    noisy = symmetric(clean, 0.3, 4, seed=6)
    assert chisquare(np.bincount(noisy[noisy > 0], minlength=4)[1:]).pvalue > 0.001


def test_with_two_classes_symmetric_noise_flips():
    clean = labels_of(2, 100)
    assert np.array_equal(symmetric(clean, 1.0, 2, seed=0), 1 - clean)


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_pair_noise_moves_to_the_next_class_only(rate):
    clean = labels_of(5, 2000)
    noisy = pair(clean, rate, 5, seed=0)
    for before, after in zip(clean.tolist(), noisy.tolist(), strict=True):
        assert after in (before, before + 1 if before < 4 else 0)


def test_symmetric_noise_against_loops():
    clean = labels_of(6, 400)
    random = np.random.Generator(np.random.PCG64(11))
    moves = [random.random() for _ in clean]
    choices = [random.random() for _ in clean]
    expected = []
    for label, move, choice in zip(clean.tolist(), moves, choices, strict=True):
        others = [(label + step) % 6 for step in range(1, 6)]
        expected.append(others[int(choice * 5)] if move < 0.6 else label)
    assert symmetric(clean, 0.6, 6, seed=11).tolist() == expected


# Written down once: the same labels on every machine and with every version of numpy.
PINNED_SYMMETRIC = [0, 3, 9, 9, 4, 5, 6, 7, 8, 9, 0, 5, 2, 0, 4, 8, 6, 7, 7, 9]
PINNED_PAIR = [0, 2, 3, 4, 4, 5, 6, 7, 8, 9, 0, 2, 2, 4, 4, 6, 6, 7, 9, 9]


def test_the_labels_are_the_same_on_every_machine():
    clean = labels_of(10, 20)
    assert symmetric(clean, 0.4, 10, seed=0).tolist() == PINNED_SYMMETRIC
    assert pair(clean, 0.4, 10, seed=0).tolist() == PINNED_PAIR


@pytest.mark.parametrize("corrupt", RATED.values())
def test_no_labels_are_no_labels(corrupt):
    assert len(corrupt(np.zeros(0, np.int64), 0.5, 10, seed=0)) == 0


@pytest.mark.parametrize("corrupt", RATED.values())
def test_what_makes_no_sense_is_refused(corrupt):
    clean = labels_of(5, 10)
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"rate must be between 0 and 1, not {rate}"):
            corrupt(clean, rate, 5, seed=0)
    with pytest.raises(ValueError, match="at least two classes, not 1"):
        corrupt(np.zeros(3, np.int64), 0.5, 1, seed=0)
    with pytest.raises(ValueError, match="between 0 and 3 for 4 classes, but that of example 4 is 4"):
        corrupt(clean, 0.5, 4, seed=0)
    with pytest.raises(ValueError, match="one class each, not \\(2, 5\\)"):
        corrupt(clean.reshape(2, 5), 0.5, 5, seed=0)


@pytest.mark.parametrize("corrupt", RATED.values())
def test_labels_of_torch_are_taken_too(corrupt):
    clean = labels_of(5, 100)
    assert np.array_equal(corrupt(torch.from_numpy(clean), 0.5, 5, seed=0), corrupt(clean, 0.5, 5, seed=0))


def test_every_corruption_has_its_matrix_unless_it_depends_on_the_example():
    assert set(TRANSITIONS) == set(CORRUPTIONS) - {"instance"}


@pytest.mark.parametrize("name", RATED)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_matrix_says_how_often_each_label_becomes_each_other(name, rate, classes):
    clean = np.arange(40_000 * classes, dtype=np.int64) % classes
    noisy = CORRUPTIONS[name](clean, rate, classes, seed=0)
    found = (
        np.array([np.bincount(noisy[clean == label], minlength=classes) for label in range(classes)]) / 40_000
    )
    matrix = TRANSITIONS[name](rate, classes)
    np.testing.assert_allclose(found, matrix, atol=0.012)
    np.testing.assert_allclose(matrix.sum(1), 1, rtol=1e-12)
    assert not found[matrix == 0].any()


@pytest.mark.parametrize("name", RATED)
def test_a_matrix_of_what_makes_no_sense_is_refused(name):
    transitions = TRANSITIONS[name]
    with pytest.raises(ValueError, match="rate must be between 0 and 1, not 2"):
        transitions(2, 5)
    with pytest.raises(ValueError, match="at least two classes, not 1"):
        transitions(0.5, 1)


SKEWED = np.array([[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.1, 0.25, 0.65]])


def test_labels_go_wrong_as_the_matrix_says():
    clean = np.arange(30_000) % 3
    noisy = class_conditional(clean, SKEWED, 3, seed=0)
    for label, row in enumerate(SKEWED):
        counts = np.bincount(noisy[clean == label], minlength=3)
        possible = row > 0
        assert not counts[~possible].any()
        assert possible.sum() == 1 or chisquare(counts[possible], row[possible] * 10_000).pvalue > 0.001


@settings(max_examples=30, deadline=None)
@given(classes=st.integers(2, 20), seed=st.integers(0, 2**62), few=st.integers(0, 50))
def test_one_more_example_changes_no_other(classes, seed, few):
    clean = np.arange(60) % classes
    matrix = symmetric_transitions(0.5, classes)
    whole = class_conditional(clean, matrix, classes, seed)
    assert whole.dtype == np.int64
    assert 0 <= whole.min() <= whole.max() < classes
    assert np.array_equal(class_conditional(clean[:few], matrix, classes, seed), whole[:few])
    assert np.array_equal(
        class_conditional(torch.from_numpy(clean), torch.from_numpy(matrix), classes, seed), whole
    )


def test_other_seeds_draw_others():
    clean = np.zeros(200, np.int64)
    first, other = (class_conditional(clean, symmetric_transitions(0.5, 4), 4, seed) for seed in (0, 1))
    assert (first != other).mean() > 0.3


# Written down once: the same labels on every machine.
PINNED = [0, 1, 1, 1, 1, 2, 0, 1, 0, 2, 1, 1]


def test_labels_by_a_matrix_are_the_same_on_every_machine():
    assert class_conditional(np.arange(12) % 3, symmetric_transitions(0.6, 3), 3, seed=0).tolist() == PINNED


def test_rows_written_with_few_digits_are_taken_and_made_exact():
    found = class_conditional_transitions([[0.333, 0.333, 0.333], [0, 1, 0], [0, 0, 1]], 3)
    assert found[0].tolist() == pytest.approx([1 / 3] * 3, rel=1e-12)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.9, 0.1], [0.5, 0.4]], "row 1 sums to 0.9"),
        ([[1.2, -0.2], [0, 1]], "row 0, column 1 has -0.2"),
        ([[float("nan"), 1], [0, 1]], "row 0, column 0 has nan"),
        ([[1.0]], r"at least two classes, not of shape \(1, 1\)"),
        ([[1.0, 0.0]], r"must be a square matrix .* at least two classes, not of shape \(1, 2\)"),
        (0.2, "a square matrix"),
        ([[1, 0], [1]], "not a ragged list"),
        (np.stack([np.eye(2)] * 3), r"one square matrix, not of shape \(3, 2, 2\)"),
        (np.eye(3), "is for 3 classes, but there are 2"),
    ],
)
def test_what_is_no_matrix_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        class_conditional(np.array([0, 1]), matrix, 2, seed=0)


def test_counting_what_was_observed_against_loops():
    random = np.random.default_rng(0)
    clean, noisy = random.integers(4, size=(2, 300))
    found = observed_transitions(clean, torch.from_numpy(noisy), 5)
    for i in range(4):
        of_class = [b for a, b in zip(clean.tolist(), noisy.tolist(), strict=True) if a == i]
        assert found[i].tolist() == pytest.approx([of_class.count(j) / len(of_class) for j in range(5)])
    assert np.isnan(found[4]).all()


def test_labels_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="not 1 for 2"):
        observed_transitions(np.array([0, 1]), np.array([0]), 2)
    with pytest.raises(ValueError, match="noisy must lie between 0 and 1"):
        observed_transitions(np.array([0, 1]), np.array([0, 2]), 2)
    with pytest.raises(ValueError, match="at least two classes, not 1"):
        observed_transitions(np.array([0]), np.array([0]), 1)
