"""What is read from each model: loss, accuracy and calibration against clean labels, beside what is predicted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from softtargets.calibration import expected_calibration_error
from softtargets.runs import Run
from softtargets.studies.chen_forward_correction.grid import FORWARD, Matrix, targets, transitions
from softtargets.studies.measures import accuracy, over_epochs
from softtargets.studies.study import Trial
from softtargets.theory import matrix_loss


class Expected(NamedTuple):
    """Clean test loss in nats of a model that has memorised its labels, and of one that has learned averages."""

    by_heart: float
    averaging: float


def expected(method: str, T: Matrix) -> Expected:
    r"""Both losses for noise T, classes being equally frequent.

    By heart a model says S[k] of an example with label k: `matrix_loss`. A model that has only learned what labels of a
    class are on average says of clean class i the mean of its targets:

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


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """All on clean test labels, as the model stands after the last epoch.

    loss, accuracy, ece: of softmax(z), which is what a user of the model would take; ECE with 15 bins.
    through:   forward correction only: the loss of the corrected output, what the model says sent through T.
    by_heart:  the share of training labels, wrong ones included, that the model gives.
    early_accuracy: the highest accuracy of any epoch.
    deviation: the loss against what is predicted for a model that has memorised everything: 0.1 is a tenth above.
    """
    method, T = str(trial.labels["method"]), transitions(str(trial.labels["noise"]), trial.labels["rate"])
    test = run.predictions("test")
    log_p, labels = test.logits.double().log_softmax(-1), test.labels.long()[:, None]
    loss = float(-log_p.gather(-1, labels).mean())
    measured = {
        "loss": loss,
        "accuracy": accuracy(test),
        "ece": expected_calibration_error(log_p.exp(), test.labels),
        **over_epochs(run),
    }
    if method == FORWARD:
        seen = log_p.exp() @ torch.from_numpy(T)
        # A net may be so sure that of what T allows nothing is left in double precision.
        measured["through"] = float(-seen.clamp(min=1e-300).log().gather(-1, labels).mean())
    if math.isfinite(known := expected(method, T).by_heart):
        measured["deviation"] = loss / known - 1
    return measured
