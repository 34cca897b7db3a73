"""Label corruption: clean labels in, noisy labels out, the same for the same seed on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]


def symmetric(labels: Labels, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace a label by one of the K-1 others, each equally likely.

    >>> symmetric(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0) == np.array([0, 1, 2, 3])
    array([False, False, False, False])
    """
    _check(labels, rate, classes)
    moved, choice = _draws(len(labels), rate, seed)
    step = 1 + np.minimum((choice * (classes - 1)).astype(np.int64), classes - 2)
    return np.where(moved, (labels + step) % classes, labels)


def pair(labels: Labels, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace label k by k + 1, and the last by the first.

    >>> pair(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0)
    array([1, 2, 3, 0])
    """
    _check(labels, rate, classes)
    moved, _ = _draws(len(labels), rate, seed)
    return np.where(moved, (labels + 1) % classes, labels)


def _check(labels: Labels, rate: float, classes: int) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must be between 0 and 1, not {rate}")
    if classes < 2:
        raise ValueError(f"labels can only be wrong among at least two classes, not {classes}")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels must lie between 0 and {classes - 1}, not {labels.min()} to {labels.max()}")


def _draws(count: int, rate: float, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    # Plain uniform doubles: the one stream numpy keeps stable between versions.
    uniform = np.random.Generator(np.random.PCG64(seed)).random((2, count))
    return uniform[0] < rate, uniform[1]
