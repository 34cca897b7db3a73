"""What each way to meet the noise comes to in theory, at both ends of what a net may learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softtargets.studies.chen_forward_correction.grid import (
    FORWARD,
    NONE,
    PRINTED,
    UNIFORM,
    Matrix,
    printed_matrix,
)
from softtargets.theory import matrix_loss, mean_field_p, optimal_matrix, uniform_matrix


@dataclass(frozen=True)
class Predicted:
    """Clean test loss in nats of a net that has learned its labels by heart, and of one that has learned averages."""

    by_heart: float
    averaging: float


def predicted(method: str, T: Matrix) -> Predicted:
    r"""Both losses for noise T, classes being equally frequent.

    By heart a net says S[k] of an example with label k: `matrix_loss`. A net that has only learned what labels of a
    class are on the average says of clean class i the mean of its targets:

    .. math:: -\frac1M \sum_i \log (TS)_{ii}

    Forward correction has no S. By heart, the one-hot vector of the clean class that most likely led to the label has
    the lowest loss, :math:`-\log \max_i T_{ik}`, and is infinitely wrong elsewhere. On the average, the lowest
    is that of the clean class itself, since T is invertible: Patrini et al. 2017, section 4.2. Then nothing is lost.

    >>> from softtargets.studies.chen_forward_correction.grid import transitions
    >>> predicted("S by Bayes", transitions("pair", 0.3))  # doctest: +ELLIPSIS
    Predicted(by_heart=0.6108..., averaging=0.5447...)
    >>> predicted("forward", transitions("pair", 0.3))
    Predicted(by_heart=inf, averaging=0.0)
    """
    if method == FORWARD:
        likeliest = np.eye(len(T))[T.argmax(0)]
        return Predicted(float(matrix_loss(likeliest, T, "alpha")), 0.0)
    S = targets(method, T)
    return Predicted(float(matrix_loss(S, T, "alpha")), float(-np.log(np.diagonal(T @ S)).mean()))


def targets(method: str, T: Matrix) -> Matrix:
    """S: row k is what label k is trained on."""
    if method == NONE:
        return np.eye(len(T))
    if method == UNIFORM:
        return np.asarray(uniform_matrix(mean_field_p(T, "alpha"), len(T)))
    return printed_matrix(T) if method == PRINTED else optimal_matrix(T, "alpha")
