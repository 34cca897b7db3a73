"""Classes as int64: labels, predictions, and whole numbers that go with classes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays.scores import ArrayLike, as_logits, as_tensor


def as_labels(
    values: ArrayLike,
    examples: int,
    classes: int,
    name: str = "labels",
    *,
    place: Callable[[int], int] = int,
    advice: str = "",
) -> Tensor:
    """Classes (N,) as int64, one for each example; floating-point numbers are taken if they are whole.

    >>> as_labels(np.array([0, 2]), examples=2, classes=2)
    Traceback (most recent call last):
    ValueError: labels must lie between 0 and 1 for 2 classes, but that of example 1 is 2
    """
    found = whole_numbers(values, name)
    if found.shape != (examples,):
        raise ValueError(
            f"there must be one label for each of the {examples} examples, not {tuple(found.shape)}"
        )
    if found.is_floating_point() and bool((broken := found != found.round()).any()):
        row = int(broken.nonzero()[0])
        raise ValueError(
            f"{name} must be whole numbers, but that of example {place(row)} is {float(found[row]):g}"
        )
    outside = (found < 0) | (found >= classes)
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise ValueError(
            f"{name} must lie between 0 and {classes - 1} for {classes} classes, but that of example {place(row)} is "
            f"{found[row].item():g}{advice}"
        )
    return found.long()


def predicted_classes(values: ArrayLike, classes: int | None = None, name: str = "predicted") -> Tensor:
    """Classes (N,) as they are, or the largest of logits or probabilities (N, K), the first of equals; on the CPU.

    `classes` is None where nobody has said how many there are.

    >>> predicted_classes(torch.tensor([[0.1, 0.9], [2.0, -1.0]]))
    tensor([1, 0])
    >>> predicted_classes(torch.tensor([1, 3]), classes=3)
    Traceback (most recent call last):
    ValueError: predicted must lie between 0 and 2 for 3 classes, but that of example 1 is 3
    """
    found = as_tensor(values)
    if found.ndim not in (1, 2) or 0 in found.shape:
        raise ValueError(
            f"{name} must be classes (examples,) or logits (examples, classes), at least one of each, not "
            f"{tuple(found.shape)}"
        )
    if found.ndim == 1:
        return labels_of(found, len(found), classes, name)
    if classes is not None and found.shape[1] != classes:
        raise ValueError(f"{name} must have a column for each of the {classes} classes, not {found.shape[1]}")
    return as_logits(found, name).argmax(1).cpu()


def labels_of(values: ArrayLike, examples: int, classes: int | None = None, name: str = "labels") -> Tensor:
    """Labels (N,) on the CPU, one for each example, where `classes` may be unknown."""
    found = whole_numbers(values, name)
    if classes is None and found.shape == (examples,):
        classes = 1 + int(_from_zero(found, name, "example").max())
    return as_labels(found, examples, 1 if classes is None else classes, name).cpu()


def counts_of_classes(values: ArrayLike, name: str) -> Tensor:
    """Whole numbers (K,) from 0, one for each class, on the CPU.

    >>> counts_of_classes(torch.tensor([20, -1]), "training_counts")
    Traceback (most recent call last):
    ValueError: training_counts must be whole numbers from 0, but that of class 1 is -1
    """
    found = whole_numbers(values, name, "one for each class")
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"{name} must be (classes,), one number for each class, not {tuple(found.shape)}")
    return _from_zero(found, name, "class").long().cpu()


def whole_numbers(
    values: ArrayLike, name: str = "labels", meaning: str = "the index of each example's class"
) -> Tensor:
    """A tensor of what may be classes: neither texts nor truth values; numbers with fractions are still among them."""
    text = not isinstance(values, Tensor) and np.asarray(values).dtype.kind not in "fiubc"
    if text or (found := as_tensor(values)).dtype == torch.bool or found.is_complex():
        kind = np.asarray(values).dtype if text else found.dtype
        raise ValueError(f"{name} must be whole numbers, {meaning}, not {kind}")
    return found if found.is_floating_point() else found.long()  # 256 is 0 to a uint8


def _from_zero(found: Tensor, name: str, whose: str) -> Tensor:
    bad = (found < 0) | (found != found.round()) | found.isinf()
    if bool(bad.any()):
        place = int(bad.nonzero()[0])
        raise ValueError(
            f"{name} must be whole numbers from 0, but that of {whose} {place} is {found[place].item():g}"
        )
    return found
