from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix as of_sklearn

from softtargets.errors import confusion_matrix, confusion_rates

from .making import predictions, several


def test_rows_are_true_and_columns_predicted():
    found = confusion_matrix(torch.tensor([1, 1, 2, 0]), torch.tensor([0, 0, 0, 2]), classes=3)
    assert found.tolist() == [[0, 2, 1], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("classes", [1, 2, 6, 30])
def test_counts_with_loops(classes):
    predicted, labels = predictions(classes=classes)
    expected = [[0] * classes for _ in range(classes)]
    for said, true in zip(predicted, labels, strict=True):
        expected[true][said] += 1
    assert confusion_matrix(predicted, labels, classes).tolist() == expected


def test_shares_of_each_row_with_sklearn():
    predicted, labels = predictions()
    assert np.allclose(confusion_rates(predicted, labels, 6), of_sklearn(labels, predicted, normalize="true"))


def test_a_class_without_examples_has_no_shares():
    found = confusion_rates(torch.tensor([0, 1]), torch.tensor([0, 0]), classes=2).tolist()
    assert found[0] == [0.5, 0.5]
    assert all(map(math.isnan, found[1]))


@settings(max_examples=60, deadline=None)
@given(several(2), st.randoms(use_true_random=False))
def test_sums_are_what_was_given_and_the_order_does_not_matter(columns, random):
    predicted, labels = columns
    found = confusion_matrix(predicted, labels, 5)
    assert int(found.sum()) == len(labels)
    assert found.sum(1).tolist() == [int((labels == k).sum()) for k in range(5)]
    assert found.sum(0).tolist() == [int((predicted == k).sum()) for k in range(5)]
    assert int(found.diagonal().sum()) == int((predicted == labels).sum())
    assert torch.equal(confusion_matrix(labels, predicted, 5), found.T)
    order = random.sample(range(len(labels)), len(labels))
    assert torch.equal(confusion_matrix(predicted[order], labels[order], 5), found)
    assert torch.equal(confusion_matrix(np.eye(5)[predicted], labels, 5), found)


@pytest.mark.parametrize("call", [confusion_matrix, confusion_rates])
def test_bad_input_is_refused(call):
    labels = torch.tensor([0, 1])
    with pytest.raises(ValueError, match="classes must be at least 1, not 0"):
        call(labels, labels, 0)
    with pytest.raises(ValueError, match="predicted must lie between 0 and 1"):
        call(torch.tensor([0, 2]), labels, 2)
    with pytest.raises(ValueError, match="labels must lie between 0 and 1"):
        call(labels, torch.tensor([2, 0]), 2)
    with pytest.raises(ValueError, match="one label for each of the 3 examples"):
        call(torch.tensor([0, 1, 1]), labels, 2)
