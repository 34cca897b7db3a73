from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.arrays import counts_of_classes, labels_of, predicted_classes


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float32])
def test_classes_are_taken_as_they_are(dtype):
    found = predicted_classes(np.array([2, 0, 1], dtype=dtype), 3)
    assert found.dtype == torch.int64
    assert found.tolist() == predicted_classes(np.array([2, 0, 1], dtype=dtype)).tolist() == [2, 0, 1]


def test_of_logits_and_probabilities_the_largest_counts_and_of_equals_the_first():
    logits = torch.tensor([[-3.0, -1.0, -2.0], [1.0, 1.0, 0.0], [0.0, 0.0, 9.0]])
    assert predicted_classes(logits).tolist() == [1, 0, 2]
    assert predicted_classes(logits.softmax(-1).numpy(), 3).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("values", "classes", "message"),
    [
        (torch.zeros(0), None, r"must be classes \(examples,\) or logits .* not \(0,\)"),
        (torch.zeros(0, 3), 3, r"at least one of each, not \(0, 3\)"),
        (torch.zeros(2, 0), None, r"at least one of each, not \(2, 0\)"),
        (torch.zeros(2, 2, 2), None, r"not \(2, 2, 2\)"),
        (torch.tensor(1), None, r"not \(\)"),
        (torch.zeros(2, 3), 4, "predicted must have a column for each of the 4 classes, not 3"),
        (torch.tensor([[0.0, math.nan]]), None, "predicted of example 0 are not all finite: nan for class 1"),
        (torch.tensor([0.0, math.nan]), None, "whole numbers from 0, but that of example 1 is nan"),
        (torch.tensor([0.0, math.inf]), None, "whole numbers from 0, but that of example 1 is inf"),
        (torch.tensor([0.0, 0.5]), 2, "must be whole numbers, but that of example 1 is 0.5"),
        (torch.tensor([0, -1]), None, "predicted must be whole numbers from 0, but that of example 1 is -1"),
        (torch.tensor([0, 3]), 3, "must lie between 0 and 2 for 3 classes, but that of example 1 is 3"),
        (torch.tensor([True, False]), None, "must be whole numbers, .* not torch.bool"),
    ],
)
def test_bad_predictions_are_refused(values, classes, message):
    with pytest.raises(ValueError, match=message):
        predicted_classes(values, classes)


@pytest.mark.parametrize("classes", [None, 4])
def test_there_is_one_label_for_each_example(classes):
    assert labels_of(np.array([3, 0]), 2, classes).tolist() == [3, 0]
    for labels in ([0, 1, 2], [0], [[0, 1]]):
        with pytest.raises(ValueError, match="one label for each of the 2 examples"):
            labels_of(np.array(labels), 2, classes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"counts must be \(classes,\), one number for each class, not \(0,\)"),
        ([[1]], r"not \(1, 1\)"),
        ([1.5], "counts must be whole numbers from 0, but that of class 0 is 1.5"),
        ([1, -2], "but that of class 1 is -2"),
        ([1, math.nan], "but that of class 1 is nan"),
        ([1j], "must be whole numbers, .* not torch.complex128"),
    ],
)
def test_there_is_one_whole_number_for_each_class(values, message):
    assert counts_of_classes(np.array([7, 0]), "counts").tolist() == [7, 0]
    with pytest.raises(ValueError, match=message):
        counts_of_classes(np.array(values), "counts")
