"""What each way to meet the noise comes to in theory, at both ends of what a net may learn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softtargets.studies.chen_forward_correction.grid import FORWARD, Matrix, targets
from softtargets.theory import matrix_loss


@dataclass(frozen=True)
class Expected:
    """Clean test loss in nats of a net that has learned its labels by heart, and of one that has learned averages."""

    by_heart: float
    averaging: float


def expected(method: str, T: Matrix) -> Expected:
    r"""Both losses for noise T, classes being equally frequent.

    By heart a net says S[k] of an example with label k: `matrix_loss`. A net that has only learned what labels of a
    class are on the average says of clean class i the mean of its targets:

    .. math:: -\frac1M \sum_i \log (TS)_{ii}

    Forward correction has no S. By heart, the one-hot vector of the clean class that most likely led to the label has
    the lowest loss, :math:`-\log \max_i T_{ik}`, and is infinitely wrong elsewhere. On the average, the lowest
    is that of the clean class itself, since T is invertible: Patrini et al. 2017, section 4.2. Then nothing is lost.

    >>> from softtargets.studies.chen_forward_correction.grid import transitions
    >>> expected("S by Bayes", transitions("pair", 0.3))  # doctest: +ELLIPSIS
    Expected(by_heart=0.6108..., averaging=0.5447...)
    >>> expected("forward", transitions("pair", 0.3))
    Expected(by_heart=inf, averaging=0.0)
    """
    if method == FORWARD:
        likeliest = np.eye(len(T))[T.argmax(0)]
        return Expected(float(matrix_loss(likeliest, T, "alpha")), 0.0)
    S = targets(method, T)
    return Expected(float(matrix_loss(S, T, "alpha")), float(-np.log(np.diagonal(T @ S)).mean()))
