"""What a model predicted, from classes or from logits, and what goes with it; on the CPU, where counting is."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels, as_logits


def predicted_classes(values: ArrayLike, classes: int | None = None, name: str = "predicted") -> Tensor:
    """Classes (N,) as they are, or the largest of logits or probabilities (N, K), the first of equals.

    `classes` is None where nobody has said how many there are.

    >>> predicted_classes(torch.tensor([[0.1, 0.9], [2.0, -1.0]]))
    tensor([1, 0])
    >>> predicted_classes(torch.tensor([1, 3]), classes=3)
    Traceback (most recent call last):
    ValueError: predicted must lie between 0 and 2 for 3 classes, but that of example 1 is 3
    """
    found = torch.as_tensor(values)
    if found.ndim not in (1, 2) or 0 in found.shape:
        raise ValueError(
            f"{name} must be classes (examples,) or logits (examples, classes), at least one of each, not "
            f"{tuple(found.shape)}"
        )
    if found.ndim == 1:
        return _classes(found, len(found), classes, name)
    if classes is not None and found.shape[1] != classes:
        raise ValueError(f"{name} must have a column for each of the {classes} classes, not {found.shape[1]}")
    return as_logits(found, name).argmax(1).cpu()


def true_classes(values: ArrayLike, examples: int, classes: int | None = None) -> Tensor:
    """Labels (N,), one for each example."""
    return _classes(values, examples, classes, "labels")


def one_per_class(values: ArrayLike, name: str) -> Tensor:
    """Whole numbers (K,) from 0, one for each class.

    >>> one_per_class(torch.tensor([20, -1]), "training_counts")
    Traceback (most recent call last):
    ValueError: training_counts must be whole numbers from 0, but that of class 1 is -1
    """
    found = torch.as_tensor(values)
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"{name} must be (classes,), one number for each class, not {tuple(found.shape)}")
    _check_from_zero(found, name, "class")
    return found.long().cpu()


def _classes(values: ArrayLike, examples: int, classes: int | None, name: str) -> Tensor:
    found = torch.as_tensor(values)
    if classes is None and found.shape == (examples,):
        _check_from_zero(found, name, "example")
        classes = 1 + int(found.max())
    return as_labels(found, examples, 1 if classes is None else classes, name).cpu()


def _check_from_zero(found: Tensor, name: str, whose: str) -> None:
    if found.dtype == torch.bool or found.is_complex():
        raise ValueError(f"{name} must be whole numbers, not {found.dtype}")
    bad = (found < 0) | (found != found.round()) | found.isinf()
    if bool(bad.any()):
        place = int(bad.nonzero()[0])
        raise ValueError(
            f"{name} must be whole numbers from 0, but that of {whose} {place} is {found[place].item():g}"
        )
