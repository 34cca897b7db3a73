"""Noise that depends on the class and on nothing else: noisy labels, and T, what becomes of each class on average.

The same seed gives the same labels on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_stochastic
from softtargets.noise.base import Labels, Matrix, checked_rate, chosen, label_array, uniforms_by_place


def symmetric(labels: ArrayLike, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace a label by one of the K-1 others, each equally likely.

    >>> symmetric(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0) == np.array([0, 1, 2, 3])
    array([False, False, False, False])
    """
    clean, moved, choice = _drawn(labels, rate, classes, seed)
    step = 1 + np.minimum((choice * (classes - 1)).astype(np.int64), classes - 2)
    return np.where(moved, (clean + step) % classes, clean)


def pair(labels: ArrayLike, rate: float, classes: int, seed: int) -> Labels:
    """With probability `rate` replace label k by k + 1, and the last by the first.

    >>> pair(np.array([0, 1, 2, 3]), rate=1.0, classes=4, seed=0)
    array([1, 2, 3, 0])
    """
    clean, moved, _ = _drawn(labels, rate, classes, seed)
    return np.where(moved, (clean + 1) % classes, clean)


def class_conditional(labels: ArrayLike, matrix: Any, classes: int, seed: int) -> Labels:
    """Replace each label i by j with probability T[i, j]; T is `matrix` (K, K), its rows add up to 1.

    The label of an example depends on the seed, on its clean label and on its place, not on how many there are.

    >>> always = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    >>> class_conditional(np.array([0, 1, 2]), always, classes=3, seed=0)
    array([1, 2, 2])
    """
    transitions = class_conditional_transitions(matrix, classes)
    clean = label_array(labels, classes)
    uniform, _ = uniforms_by_place(len(clean), seed, "class-conditional noise")
    return chosen(transitions[clean], uniform)


def class_conditional_transitions(matrix: Any, classes: int) -> Matrix:
    """The matrix itself, T[i, j] = P(noisy = j | clean = i), once it is known to be one for so many classes.

    >>> class_conditional_transitions([[0.9, 0.1], [0.0, 1.0]], classes=2)
    array([[0.9, 0.1],
           [0. , 1. ]])
    >>> class_conditional_transitions([[0.9, 0.1], [0.3, 0.6]], classes=2)
    Traceback (most recent call last):
    ValueError: the matrix must have rows that sum to 1, but row 1 sums to 0.9; T[i, j] is the probability that
    clean label i becomes j
    """
    advice = "T[i, j] is the probability that clean label i becomes j"
    transitions = as_stochastic("the matrix", matrix, advice)
    if transitions.ndim != 2:
        raise ValueError(f"the matrix must be one square matrix, not of shape {transitions.shape}")
    if len(transitions) != classes:
        raise ValueError(f"the matrix is for {len(transitions)} classes, but there are {classes}")
    return transitions


def symmetric_transitions(rate: float, classes: int) -> Matrix:
    """A label stays with probability 1 - rate; the K-1 others share the rest.

    >>> symmetric_transitions(0.2, classes=3)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    checked_rate(rate, classes)
    matrix = np.full((classes, classes), rate / (classes - 1))
    np.fill_diagonal(matrix, 1 - rate)
    return matrix


def pair_transitions(rate: float, classes: int) -> Matrix:
    """Label k stays with probability 1 - rate and becomes k + 1 otherwise, the last the first.

    >>> pair_transitions(0.2, classes=3)
    array([[0.8, 0.2, 0. ],
           [0. , 0.8, 0.2],
           [0.2, 0. , 0.8]])
    """
    checked_rate(rate, classes)
    same = np.eye(classes)
    return (1 - rate) * same + rate * np.roll(same, 1, axis=1)


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


def _drawn(
    labels: ArrayLike, rate: float, classes: int, seed: int
) -> tuple[Labels, NDArray[np.bool_], NDArray[np.float64]]:
    """The clean labels, which of them go wrong, and a number from 0 to 1 for each that may choose how."""
    checked_rate(rate, classes)
    clean = label_array(labels, classes)
    # Plain uniform doubles: the one stream numpy keeps stable between versions.
    uniform = np.random.Generator(np.random.PCG64(seed)).random((2, len(clean)))
    return clean, uniform[0] < rate, uniform[1]
