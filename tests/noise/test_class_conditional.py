from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from softtargets.noise import (
    class_conditional,
    class_conditional_transitions,
    observed_transitions,
    symmetric_transitions,
)

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


def test_the_labels_are_the_same_on_every_machine():
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
        ([[1.0, 0.0]], r"must be a square matrix, .* at least two classes, not of shape \(1, 2\)"),
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
