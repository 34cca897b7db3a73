"""What is read from each net: loss, accuracy and calibration against clean labels, beside what is predicted."""

from __future__ import annotations

import math

import torch

from softtargets.calibration import expected_calibration_error
from softtargets.runs import Run
from softtargets.studies.chen_forward_correction.expected import expected
from softtargets.studies.chen_forward_correction.grid import FORWARD, transitions
from softtargets.studies.measures import accuracy, over_epochs
from softtargets.studies.study import Trial


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """All on clean test labels, as the net stands after the last epoch.

    loss, accuracy, ece: of softmax(z), which is what a user of the net would take; ECE with 15 bins.
    through:   forward correction only: the loss of the corrected output, what the net says sent through T.
    by_heart:  the share of training labels, wrong ones included, that the net gives.
    early_accuracy: the highest accuracy of any epoch.
    deviation: the loss against what is predicted for a net that has learned all by heart: 0.1 is a tenth above.
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
