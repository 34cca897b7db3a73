"""Noise that a matrix says: how a label goes wrong depends on the class and on nothing else."""

from __future__ import annotations

from typing import Any

from softtargets.arrays import ArrayLike
from softtargets.noise.arguments import Labels, Matrix, label_array, transition_matrix
from softtargets.noise.draws import chosen, uniforms_by_place


def class_conditional(labels: ArrayLike, matrix: Any, classes: int, seed: int) -> Labels:
    """Replace each label i by j with probability T[i, j]; T is `matrix` (K, K), its rows add up to 1.

    The label of an example depends on the seed, on its clean label and on its place, not on how many there are.

    >>> import numpy as np
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
    """
    transitions = transition_matrix(matrix)
    if len(transitions) != classes:
        raise ValueError(f"the matrix is for {len(transitions)} classes, but there are {classes}")
    return transitions
