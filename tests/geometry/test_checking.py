from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.geometry.checking import as_activations, as_real, as_templates, three_classes


def test_values_keep_their_precision_and_lose_their_gradient():
    layer = torch.nn.Linear(4, 3)
    found = as_templates(layer.weight)
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert torch.equal(found, layer.weight)
    assert as_templates(np.eye(3, dtype=np.float32)).dtype == torch.float32
    assert as_templates(np.eye(3, dtype=np.int64)).dtype == torch.float64


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(3), r"need weights \(K, D\) with D of at least 1, not \(3,\)"),
        (np.zeros((0, 3)), r"not \(0, 3\)"),
        (np.array([[0.0, 1.0], [2.0, np.nan]]), "weights contain NaN or infinite values: nan for class 1"),
        (np.array([[True]]), "weights must be real numbers, not torch.bool"),
        (np.array([[1j]]), "weights must be real numbers, not torch.complex128"),
    ],
)
def test_templates_that_are_none_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        as_templates(values)


@pytest.mark.parametrize(
    ("values", "size", "words"),
    [
        (np.zeros(3), None, r"activations must be \(examples, dimensions\), not \(3,\)"),
        (np.zeros((3, 0)), None, r"not \(3, 0\)"),
        (np.zeros((3, 2)), 5, "activations have 2 dimensions, but the last layer takes 5"),
        (np.array([[0.0, -np.inf]]), 2, "activations of example 0 are not all finite: -inf in dimension 1"),
    ],
)
def test_activations_that_are_none_are_refused(values, size, words):
    with pytest.raises(ValueError, match=words):
        as_activations(values, size)


def test_three_classes_of_any_kind_of_integer():
    assert three_classes((np.int64(2), 0, torch.tensor(1)), 3) == [2, 0, 1]
    with pytest.raises(ValueError, match=r"need three different classes from 0 to 1, not \[0, 1, 2\]"):
        three_classes([0, 1, 2], 2)


def test_half_precision_stays():
    assert as_real(torch.zeros(2, dtype=torch.bfloat16), "x").dtype == torch.bfloat16
