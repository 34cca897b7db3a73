from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.errors import FrequencyGroup, accuracy_by_frequency

from .making import predictions, several


def by_loops(predicted, labels, counts, fewest, most):
    """A group from its definition."""
    classes = [k for k, count in enumerate(counts) if fewest <= count and (most is None or count <= most)]
    of_group = [i for i, true in enumerate(labels) if true in classes]
    right = [i for i in of_group if predicted[i] == labels[i]]
    return FrequencyGroup(fewest, most, len(classes), len(of_group), len(right))


def ranges(counts, groups):
    """The counts that each group spans, for classes without any examples but one."""
    found = accuracy_by_frequency(np.array([0]), np.array([0]), np.array(counts), groups)
    return [(group.fewest, group.most, group.classes) for group in found]


def test_groups_by_hand():
    counts = torch.tensor([500, 0, 10, 60])
    found = accuracy_by_frequency(
        torch.tensor([0, 0, 0, 1, 2, 3, 3]), torch.tensor([0, 0, 3, 1, 2, 2, 3]), counts, groups=2
    )
    assert found == (
        FrequencyGroup(fewest=0, most=0, classes=1, examples=1, right=1),
        FrequencyGroup(fewest=10, most=10, classes=1, examples=2, right=1),
        FrequencyGroup(fewest=60, most=500, classes=2, examples=4, right=3),
    )
    assert [group.accuracy for group in found] == [1, 0.5, 0.75]
    assert [group.unseen for group in found] == [True, False, False]


@pytest.mark.parametrize("groups", [1, 3, 6, [2], [5, 30], [5, 30, 1000]])
def test_the_definition_with_loops(groups):
    predicted, labels = predictions()
    counts = np.array([4, 0, 30, 5, 29, 700])
    found = accuracy_by_frequency(predicted, labels, counts, groups)
    assert found == tuple(by_loops(predicted, labels, counts, group.fewest, group.most) for group in found)
    assert sum(group.examples for group in found) == len(labels)


def test_edges_are_where_a_group_begins():
    assert ranges([1, 19, 20, 99, 100, 5000], [20, 100]) == [(1, 19, 2), (20, 99, 2), (100, None, 2)]


def test_given_edges_keep_groups_without_classes():
    found = accuracy_by_frequency(np.array([0]), np.array([0]), np.array([5]), [2, 10])
    assert [group.classes for group in found] == [0, 1, 0]
    assert math.isnan(found[0].accuracy)
    assert found[1].accuracy == 1


@pytest.mark.parametrize(
    ("counts", "groups", "expected"),
    [
        ([1, 2, 3, 4], 2, [(1, 2, 2), (3, 4, 2)]),
        ([4, 3, 2, 1], 4, [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1)]),
        ([1, 5, 5, 5], 2, [(1, 1, 1), (5, 5, 3)]),
        ([5, 5, 5, 9], 2, [(5, 5, 3), (9, 9, 1)]),
        ([7, 7, 7], 3, [(7, 7, 3)]),
        ([3, 8], 10, [(3, 3, 1), (8, 8, 1)]),
        ([0, 0, 8, 6], 1, [(0, 0, 2), (6, 8, 2)]),
        ([0, 0], 4, [(0, 0, 2)]),
    ],
)
def test_quantiles_have_equal_numbers_of_classes_and_ties_stay_together(counts, groups, expected):
    assert ranges(counts, groups) == expected
    assert ranges(counts, np.int64(groups)) == expected


def test_there_are_four_groups_unless_told():
    found = accuracy_by_frequency(np.array([0]), np.array([0]), np.arange(1, 101))
    assert [group.classes for group in found] == [25, 25, 25, 25]


@settings(max_examples=60, deadline=None)
@given(
    several(2),
    st.lists(st.integers(0, 20), min_size=5, max_size=5),
    st.one_of(st.integers(1, 7), st.sets(st.integers(2, 25), min_size=1, max_size=4).map(sorted)),
    st.randoms(use_true_random=False),
)
def test_every_class_and_example_is_in_one_group_in_any_order(columns, counts, groups, random):
    predicted, labels = columns
    found = accuracy_by_frequency(predicted, labels, np.array(counts), groups)
    assert sum(group.classes for group in found) == 5
    assert sum(group.examples for group in found) == len(labels)
    assert sum(group.right for group in found) == int((predicted == labels).sum())
    assert any(group.unseen for group in found) == (0 in counts)
    for rarer, commoner in pairwise(found):
        assert rarer.most < commoner.fewest
    order = random.sample(range(len(labels)), len(labels))
    assert accuracy_by_frequency(predicted[order], labels[order], np.array(counts), groups) == found
    assert accuracy_by_frequency(np.eye(5)[predicted], labels, np.array(counts), groups) == found
    if isinstance(groups, int) and len(set(counts)) == 5 and 0 not in counts:
        sizes = [group.classes for group in found]
        assert len(sizes) == min(groups, 5)
        assert max(sizes) - min(sizes) <= 1


LABELS, COUNTS = torch.tensor([0, 1]), torch.tensor([3, 9])


@pytest.mark.parametrize(
    ("predicted", "labels", "counts", "groups", "message"),
    [
        (torch.tensor([0, 2]), LABELS, COUNTS, 4, "predicted must lie between 0 and 1"),
        (LABELS, torch.tensor([0, 2]), COUNTS, 4, "labels must lie between 0 and 1"),
        (LABELS[:1], LABELS, COUNTS, 4, "one label for each of the 1 examples"),
        (LABELS[:0], LABELS[:0], COUNTS, 4, "at least one of each"),
        (
            LABELS,
            LABELS,
            -COUNTS,
            4,
            "training_counts must be whole numbers from 0, but that of class 0 is -3",
        ),
        (LABELS, LABELS, COUNTS * math.nan, 4, "but that of class 0 is nan"),
        (LABELS, LABELS, COUNTS[:0], 4, r"training_counts must be \(classes,\)"),
        (
            LABELS,
            LABELS,
            COUNTS,
            0,
            "groups must be a number of at least 1 or the edges between groups, not 0",
        ),
        (LABELS, LABELS, COUNTS, True, "groups must be a number of at least 1 .* not True"),
        (LABELS, LABELS, COUNTS, [], r"edges between groups must be .* not \[\]"),
        (LABELS, LABELS, COUNTS, [1, 5], r"whole numbers from 2, each above the last, not \[1, 5\]"),
        (LABELS, LABELS, COUNTS, [5, 5], r"not \[5, 5\]"),
        (LABELS, LABELS, COUNTS, [2.5], r"not \[2\.5\]"),
        (LABELS, LABELS, COUNTS, [math.nan], r"not \[nan\]"),
    ],
)
def test_bad_input_is_refused(predicted, labels, counts, groups, message):
    with pytest.raises(ValueError, match=message):
        accuracy_by_frequency(predicted, labels, counts, groups)
