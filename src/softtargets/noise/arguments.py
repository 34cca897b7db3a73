"""What noise is made of, checked: rates and labels. One sentence for whoever gave something else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_labels

Labels = NDArray[np.int64]
Matrix = NDArray[np.float64]


def checked_rate(rate: float, classes: int) -> None:
    """Refuse a rate that is no probability, and noise among fewer than two classes."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be between 0 and 1, not {rate}")
    if classes < 2:
        raise ValueError(f"labels can only be wrong among at least two classes, not {classes}")


def label_array(labels: ArrayLike, classes: int, name: str = "labels") -> Labels:
    """Labels (N,) on the CPU, from torch or numpy.

    >>> label_array(np.array([0, 3]), classes=3)
    Traceback (most recent call last):
    ValueError: labels must lie between 0 and 2 for 3 classes, but that of example 1 is 3
    """
    if np.ndim(labels) != 1:
        raise ValueError(f"{name} must be (examples,), one class each, not {tuple(np.shape(labels))}")
    return as_labels(labels, len(labels), classes, name).cpu().numpy()
