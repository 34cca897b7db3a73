"""What noise is made of, checked: rates, labels, matrices. One sentence for whoever gave something else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_labels

Labels = NDArray[np.int64]
Matrix = NDArray[np.float64]

# How far the probabilities of a row may be from adding up to 1: people write 0.333.
ROW_TOLERANCE = 1e-3


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


def transition_matrix(matrix: Any) -> Matrix:
    """T (K, K) in double precision, T[i, j] = P(noisy = j | clean = i), each row adding up to exactly 1.

    >>> transition_matrix([[0.9, 0.1], [0.3, 0.6]])
    Traceback (most recent call last):
    ValueError: each row of the matrix must add up to 1, but row 1 adds up to 0.9; T[i, j] is the probability that
    clean label i becomes j
    """
    try:
        found = np.asarray(matrix.detach().cpu() if hasattr(matrix, "detach") else matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "the matrix must hold one number for each pair of classes, in rows of one length"
        ) from None
    if found.ndim != 2 or found.shape[0] != found.shape[1] or len(found) < 2:
        shape = " x ".join(map(str, found.shape)) or "a single number"
        raise ValueError(f"the matrix must be square, for at least two classes, not {shape}")
    wrong = ~((found >= 0) & (found <= 1))  # NaN too
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        raise ValueError(
            f"the matrix must hold probabilities from 0 to 1, but row {row}, column {column} has "
            f"{found[row, column]:g}"
        )
    sums = found.sum(1)
    if (apart := np.abs(sums - 1) > ROW_TOLERANCE).any():
        row = int(apart.argmax())
        raise ValueError(
            f"each row of the matrix must add up to 1, but row {row} adds up to {sums[row]:g}; T[i, j] is the "
            "probability that clean label i becomes j"
        )
    transitions: Matrix = found / sums[:, None]
    return transitions
