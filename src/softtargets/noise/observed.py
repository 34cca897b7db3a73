"""What noise there is where the clean labels are known: counted, not estimated."""

from __future__ import annotations

import numpy as np

from softtargets.arrays import ArrayLike
from softtargets.noise.arguments import Matrix, label_array


def observed_transitions(clean: ArrayLike, noisy: ArrayLike, classes: int) -> Matrix:
    """T[i, j], the share of examples with clean label i that are labelled j; rows add up to 1.

    Such as CIFAR-N's, whose clean labels are known (`softtargets.data.load_human_labels`). The row of a class without
    examples is NaN.

    >>> observed_transitions(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), classes=2)
    array([[0.5, 0.5],
           [0. , 1. ]])
    """
    if classes < 2:
        raise ValueError(f"labels can only be wrong among at least two classes, not {classes}")
    before, after = label_array(clean, classes, "clean"), label_array(noisy, classes, "noisy")
    if len(before) != len(after):
        raise ValueError(
            f"there must be a noisy label for each clean one, not {len(after)} for {len(before)}"
        )
    counts = np.bincount(before * classes + after, minlength=classes * classes).reshape(classes, classes)
    with np.errstate(invalid="ignore"):
        shares: Matrix = counts / counts.sum(1, keepdims=True)
    return shares
