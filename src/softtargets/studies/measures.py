"""Measurements that several studies make on a run."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.runs import Predictions, Run


def accuracy(predictions: Predictions) -> float:
    """The share of examples whose largest logit is that of their label."""
    return float((predictions.logits.argmax(-1) == predictions.labels).double().mean())


def likelihood_and_calibration(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Mean negative log-likelihood in nats, and ECE with 15 bins."""
    return {
        "nll": float(F.cross_entropy(logits, labels)),
        "ece": expected_calibration_error(logits.softmax(-1), labels),
    }


def over_epochs(run: Run) -> dict[str, float]:
    """The highest test accuracy of any epoch, and the share of training labels that the net gives at the end."""
    return {
        "early_accuracy": max(float(row["test_accuracy"]) for row in run.history()),
        "by_heart": float(run.summary["train_accuracy"]),
    }
