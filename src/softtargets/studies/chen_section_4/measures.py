"""What is read from each model: loss against clean and against corrupted test labels, beside what is predicted."""

from __future__ import annotations

import math

import numpy as np
import torch

from softtargets.calibration import expected_calibration_error
from softtargets.runs import Run
from softtargets.studies.chen_section_4.grid import Matrix, noise_matrix, target_matrix
from softtargets.studies.measures import accuracy, over_epochs
from softtargets.studies.study import Trial
from softtargets.theory import averaging_matrix_loss, matrix_loss


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """On the test images, as the model stands after the last epoch.

    loss, accuracy, ece: against clean labels; ECE with 15 bins.
    loss_beta:   against labels as wrong as those of the training, on average over all ways to draw them.
    deviation_*: the loss against what is predicted for a model that has memorised everything: 0.1 is a tenth above.
    by_heart:    the share of training labels, wrong ones included, that the model gives.
    early_accuracy: the highest accuracy of any epoch.
    """
    T = noise_matrix(str(trial.labels["noise"]), float(trial.labels["rate"]))
    test = run.predictions("test")
    log_p, labels = test.logits.double().log_softmax(-1), test.labels.long()
    measured = {
        "loss": float(-log_p.gather(-1, labels[:, None]).mean()),
        "loss_beta": float(-(torch.from_numpy(T)[labels] * log_p).sum(-1).mean()),
        "accuracy": accuracy(test),
        "ece": expected_calibration_error(log_p.exp(), test.labels),
        **over_epochs(run),
    }
    for kind, loss in (("alpha", "loss"), ("beta", "loss_beta")):
        known = predicted(str(trial.labels["method"]), T, kind)[0]
        if math.isfinite(known) and known > 0:
            measured[f"deviation_{kind}"] = measured[loss] / known - 1
    return measured


def predicted(way: str, T: Matrix, kind: str) -> tuple[float, float]:
    """Losses of a model that has memorised its labels, and of one that has learned averages; classes equally frequent.

    >>> T = noise_matrix("pair", 0.45)
    >>> tuple(round(value, 3) for value in predicted("S* = T Tᵗ", T, "beta"))
    (1.036, 0.975)
    """
    S = target_matrix(way, T)
    with np.errstate(divide="ignore", invalid="ignore"):
        averaged = averaging_matrix_loss(S, T, kind, np.full(len(T), 1 / len(T)))
    return float(matrix_loss(S, T, kind)), float(averaged)
