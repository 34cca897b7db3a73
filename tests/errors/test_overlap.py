from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.errors import ErrorOverlap, error_overlap

from .making import predictions, several


def by_sets(first, second, labels):
    a = {i for i, true in enumerate(labels) if first[i] != true}
    b = {i for i, true in enumerate(labels) if second[i] != true}
    return a, b, {i for i in a & b if first[i] == second[i]}


def test_an_overlap_by_hand():
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 0, 0])
    first = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2])
    second = torch.tensor([0, 0, 1, 0, 0, 1, 2, 1])
    found = error_overlap(first, second, labels)
    assert found == ErrorOverlap(
        both_right=2, only_first_wrong=2, only_second_wrong=1, both_wrong=3, same_mistake=2
    )
    assert (found.examples, found.first_errors, found.second_errors) == (8, 5, 4)
    assert found.jaccard == 3 / 6
    assert found.same_mistake_share == 2 / 3
    assert found.expected_both_wrong == 5 * 4 / 8
    assert found.expected_jaccard == pytest.approx(2.5 / 6.5)


@pytest.mark.parametrize("seed", range(4))
def test_the_definition_with_sets(seed):
    first, labels = predictions(seed=seed)
    second = np.where(np.arange(200) % 3 == 0, first, predictions(seed=seed + 10)[0])
    a, b, same = by_sets(first, second, labels)
    found = error_overlap(first, second, labels)
    assert found == ErrorOverlap(200 - len(a | b), len(a - b), len(b - a), len(a & b), len(same))
    assert found.jaccard == len(a & b) / len(a | b)


def test_errors_drawn_independently_overlap_as_expected():
    random = np.random.default_rng(0)
    labels = np.zeros(200_000, int)
    first, second = (1 * (random.random(200_000) < rate) for rate in (0.3, 0.2))
    found = error_overlap(first, second, labels)
    assert found.both_wrong == pytest.approx(found.expected_both_wrong, rel=0.03)
    assert found.jaccard == pytest.approx(found.expected_jaccard, rel=0.03)


@settings(max_examples=60, deadline=None)
@given(several(3), st.randoms(use_true_random=False))
def test_it_is_symmetric_and_the_order_does_not_matter(columns, random):
    first, second, labels = columns
    found, turned = error_overlap(first, second, labels), error_overlap(second, first, labels)
    assert found.examples == len(labels)
    assert (found.only_first_wrong, found.only_second_wrong) == (
        turned.only_second_wrong,
        turned.only_first_wrong,
    )
    for name in (
        "both_right",
        "both_wrong",
        "same_mistake",
        "jaccard",
        "expected_both_wrong",
        "expected_jaccard",
    ):
        assert getattr(found, name) == pytest.approx(getattr(turned, name), nan_ok=True)
    assert found.same_mistake <= found.both_wrong
    order = random.sample(range(len(labels)), len(labels))
    assert error_overlap(first[order], second[order], labels[order]) == found
    assert error_overlap(np.eye(5)[first], second, labels) == found
    itself = error_overlap(first, first, labels)
    assert itself.both_wrong == itself.same_mistake == found.first_errors
    assert itself.jaccard == pytest.approx(1 if found.first_errors else math.nan, nan_ok=True)


def test_without_errors_nothing_can_be_said():
    labels = torch.tensor([0, 1])
    found = error_overlap(labels, labels, labels)
    assert found.expected_both_wrong == 0
    assert all(map(math.isnan, (found.jaccard, found.same_mistake_share, found.expected_jaccard)))


@pytest.mark.parametrize(
    ("first", "second", "labels", "message"),
    [
        ([0, 1], [0], [0, 1], "both models must predict the same examples, not 2 and 1"),
        ([0, 1], [0, 1], [0], "one label for each of the 2 examples"),
        ([0, -1], [0, 1], [0, 1], "first_predicted must be whole numbers from 0"),
        ([0, 1], [0, -1], [0, 1], "second_predicted must be whole numbers from 0"),
        ([0, 1], [0, 1], [0, -1], "labels must be whole numbers from 0"),
        ([[0.0, 1.0]], [[0.0, 1.0, 2.0]], [0], "both models must have the same classes, not 2 and 3"),
        ([[0.0, 1.0]], [2], [0], "second_predicted must lie between 0 and 1"),
        ([[0.0, 1.0]], [1], [2], "labels must lie between 0 and 1"),
        ([[0.0, math.nan]], [1], [1], "first_predicted of example 0 are not all finite"),
        ([], [], [], r"first_predicted must be .* not \(0,\)"),
    ],
)
def test_bad_input_is_refused(first, second, labels, message):
    with pytest.raises(ValueError, match=message):
        error_overlap(np.array(first), np.array(second), np.array(labels))
