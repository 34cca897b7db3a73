"""What a corruption does on average: T_ij, the probability that clean label i becomes j."""

from __future__ import annotations

import numpy as np

from softtargets.noise.arguments import Matrix, checked_rate


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
