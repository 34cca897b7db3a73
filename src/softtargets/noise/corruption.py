"""Label corruption: clean labels in, noisy labels out, the same for the same seed on every machine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike
from softtargets.noise.arguments import Labels, checked_rate, label_array


def symmetric(labels: ArrayLike, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace a label by one of the K-1 others, each equally likely.

    >>> symmetric(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0) == np.array([0, 1, 2, 3])
    array([False, False, False, False])
    """
    checked_rate(rate, classes)
    clean = label_array(labels, classes)
    moved, choice = _draws(len(clean), rate, seed)
    step = 1 + np.minimum((choice * (classes - 1)).astype(np.int64), classes - 2)
    return np.where(moved, (clean + step) % classes, clean)


def pair(labels: ArrayLike, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace label k by k + 1, and the last by the first.

    >>> pair(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0)
    array([1, 2, 3, 0])
    """
    checked_rate(rate, classes)
    clean = label_array(labels, classes)
    moved, _ = _draws(len(clean), rate, seed)
    return np.where(moved, (clean + 1) % classes, clean)


def _draws(count: int, rate: float, seed: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    # Plain uniform doubles: the one stream numpy keeps stable between versions.
    uniform = np.random.Generator(np.random.PCG64(seed)).random((2, count))
    return uniform[0] < rate, uniform[1]
