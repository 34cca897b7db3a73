"""Logits, probabilities and labels as tensors, or one sentence about what is wrong with them.

Tensors stay on their device and in their precision; nothing is copied that need not be.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ArrayLike = Tensor | NDArray[np.generic]

# How far the probabilities of an example may be from adding up to 1: half precision is that coarse.
SUM_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 5e-3}


def as_logits(values: ArrayLike, name: str = "logits") -> Tensor:
    """Finite numbers (N, K), at least one example and one class.

    >>> as_logits(np.zeros((2, 3), dtype=np.float32)).shape
    torch.Size([2, 3])
    >>> as_logits(torch.tensor([[0.0, float("nan")]]))
    Traceback (most recent call last):
    ValueError: logits of example 0 are not all finite: nan for class 1
    """
    found = _floating(values, name)
    if found.ndim != 2 or 0 in found.shape:
        raise ValueError(
            f"{name} must be (examples, classes), at least one of each, not {tuple(found.shape)}"
        )
    if not bool(torch.isfinite(found).all()):
        example, place = (int(index) for index in (~torch.isfinite(found)).nonzero()[0])
        value = float(found[example, place])
        raise ValueError(f"{name} of example {example} are not all finite: {value} for class {place}")
    return found


def as_probabilities(values: ArrayLike, name: str = "probabilities") -> Tensor:
    """Numbers (N, K) from 0 to 1 that add up to 1 for each example.

    >>> as_probabilities(torch.tensor([[2.0, -1.0]]))
    Traceback (most recent call last):
    ValueError: probabilities must lie between 0 and 1, but example 0 has -1 to 2; pass softmax(logits), not logits
    """
    found = as_logits(values, name)
    low, high = found.amin(1), found.amax(1)
    tolerance = SUM_TOLERANCE[found.dtype]
    outside = (low < 0) | (high > 1 + tolerance)
    if bool(outside.any()):
        example = int(outside.nonzero()[0])
        raise ValueError(
            f"{name} must lie between 0 and 1, but example {example} has {float(low[example]):g} to "
            f"{float(high[example]):g}; pass softmax(logits), not logits"
        )
    sums = found.sum(1, dtype=torch.float64)
    apart = (sums - 1).abs() > tolerance
    if bool(apart.any()):
        example = int(apart.nonzero()[0])
        raise ValueError(
            f"{name} of each example must add up to 1, but those of example {example} add up to "
            f"{float(sums[example]):g}; divide by the sum, or pass all classes"
        )
    return found


def as_labels(values: ArrayLike, examples: int, classes: int, name: str = "labels") -> Tensor:
    """Classes (N,) as int64, one for each example; floating-point numbers are taken if they are whole.

    >>> as_labels(np.array([0, 2]), examples=2, classes=2)
    Traceback (most recent call last):
    ValueError: labels must lie between 0 and 1 for 2 classes, but that of example 1 is 2
    """
    found = torch.as_tensor(values)
    if found.dtype == torch.bool or found.is_complex():
        raise ValueError(
            f"{name} must be whole numbers, the index of each example's class, not {found.dtype}"
        )
    if found.shape != (examples,):
        raise ValueError(
            f"there must be one label for each of the {examples} examples, not {tuple(found.shape)}"
        )
    if found.is_floating_point() and bool((broken := found != found.round()).any()):
        example = int(broken.nonzero()[0])
        raise ValueError(
            f"{name} must be whole numbers, but that of example {example} is {float(found[example]):g}"
        )
    outside = (found < 0) | (found >= classes)
    if bool(outside.any()):
        example = int(outside.nonzero()[0])
        raise ValueError(
            f"{name} must lie between 0 and {classes - 1} for {classes} classes, but that of example {example} is "
            f"{found[example].item():g}"
        )
    return found.long()


def _floating(values: ArrayLike, name: str) -> Tensor:
    found = torch.as_tensor(values)
    if found.is_complex() or found.dtype == torch.bool:
        raise ValueError(f"{name} must be real numbers, not {found.dtype}")
    return found if found.is_floating_point() else found.double()
