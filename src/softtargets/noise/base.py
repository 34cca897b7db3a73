"""What every kind of noise needs: checked rates and labels, and draws by seed and by the place of the example."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_labels
from softtargets.randomness import key_words, words

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


def uniforms_by_place(count: int, seed: int, purpose: str, stream: int = 0) -> tuple[Matrix, Matrix]:
    """Two numbers from 0 to just below 1 for each of so many examples, with all 53 bits of a double.

    One example more changes no other's. Other streams of the same seed and purpose share no draws.

    >>> few, more = uniforms_by_place(2, 0, "example")[0], uniforms_by_place(5, 0, "example")[0]
    >>> bool((few == more[:2]).all())
    True
    """
    drawn = words(key_words(seed, purpose), torch.arange(count, device="cpu"), stream).numpy()
    high, low = drawn[:, 0::2] >> 5, drawn[:, 1::2] >> 6
    both = (high * 2.0**26 + low) * 2.0**-53
    return both[:, 0], both[:, 1]


def chosen(probabilities: Matrix, uniform: Matrix) -> NDArray[np.int64]:
    """For each row (N, K) of probabilities the class that its number in [0, 1) falls on; never one of probability 0.

    >>> chosen(np.array([[0.2, 0.0, 0.8], [0.2, 0.0, 0.8]]), np.array([0.1, 0.2])).tolist()
    [0, 2]
    """
    reached = np.cumsum(probabilities, axis=1)
    # Rounding may leave the last sum below 1: whatever lies beyond belongs to the last class that is possible.
    last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(1)
    found = (uniform[:, None] >= reached).sum(1)
    classes: NDArray[np.int64] = np.minimum(found, last).astype(np.int64)
    return classes
