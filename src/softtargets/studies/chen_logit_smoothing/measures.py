"""What is read from each model: its loss as it stands and as it was trained, and the chain of equation 19."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.runs import Run
from softtargets.studies.chen_logit_smoothing.grid import moved
from softtargets.studies.measures import accuracy, over_epochs
from softtargets.studies.study import Trial


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Losses against clean test labels, accuracy, and how often equation 19 holds.

    loss:          of softmax(z), which is what a user of the model would take.
    loss_trained:  of what the training looked at: softmax(Sz) for logit smoothing, T softmax(z) for forward correction.
    by_heart:      the share of training labels, wrong ones included, that the model gives.
    jensen, next:  for how many test images the first and the second inequality of equation 19 hold.
    """
    method, a, p = str(trial.labels["method"]), float(trial.labels["a"]), float(trial.labels["p"])
    test = run.predictions("test")
    logits, labels = test.logits.double(), test.labels.long()
    measured = {"loss": _cost(logits.log_softmax(-1), labels), "accuracy": accuracy(test), **over_epochs(run)}
    if method == "logit smoothing":
        measured["loss_trained"] = _cost(((1 - moved(p)) * logits).log_softmax(-1), labels)
    elif method == "forward correction":
        measured["loss_trained"] = _cost((logits.softmax(-1) @ _uniform(a, logits.shape[-1])).log(), labels)
    else:
        measured["loss_trained"] = measured["loss"]
    if p < 1:
        label, forward, logit = chain(logits, p)
        # Where the sums are the same but for rounding, "at most" holds.
        slack = 1e-9 * label.abs()
        measured["jensen"] = float((label <= forward + slack).double().mean())
        measured["next"] = float((forward <= logit + slack).double().mean())
    return measured


def chain(logits: Tensor, p: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""The three sums of equation 19 for each row of logits h, S having p on the diagonal.

    .. math:: \sum_{ij} S_{ij} \log \sigma(h)_j, \quad \sum_i \log \sum_j S_{ij} \sigma(h)_j, \quad
              \sum_i \log \sigma(Sh)_i

    >>> import torch
    >>> [round(float(value), 3) for value in chain(torch.tensor([[3.0, 0.0]], dtype=torch.float64), 0.9)]
    [-3.097, -2.129, -2.574]
    """
    S = _uniform(p, logits.shape[-1])
    logs = logits.log_softmax(-1)
    return (logs @ S).sum(-1), (logs.exp() @ S).log().sum(-1), (logits @ S).log_softmax(-1).sum(-1)


def _uniform(p: float, classes: int) -> Tensor:
    matrix = torch.full((classes, classes), (1 - p) / (classes - 1), dtype=torch.float64)
    return matrix.fill_diagonal_(p)


def _cost(log_p: Tensor, labels: Tensor) -> float:
    return float(-log_p.gather(-1, labels[:, None]).mean())
