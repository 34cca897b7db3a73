"""What is read from each model of the plane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from softtargets.runs import Run
from softtargets.studies.measures import TrainedNets, accuracy, over_epochs
from softtargets.studies.results import Results
from softtargets.studies.study import Outcome, Place, Trial
from softtargets.theory import averaging_loss, generalization_loss

# Of that many training images the loss is measured: enough for three digits.
TRAINED = 10_000
# What test labels are like: clean, as wrong as those of the training, or clean and smoothed.
KINDS = ("alpha", "beta", "gamma")


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Test loss of all three types beside what is predicted; accuracy; and how much was memorised.

    loss_alpha:    cross-entropy with the clean test labels.
    loss_beta:     the same with labels as wrong as those of the training, on average over all ways to draw them.
    loss_gamma:    the same with clean labels that are smoothed like those of the training: p on the label.
    accuracy:      against clean labels, after the last epoch.
    early_*:       the lowest loss and the highest accuracy of any epoch, each for itself.
    by_heart:      the share of training labels, wrong ones included, that the model gives.
    left:          what the training loss still lies above the entropy of its targets, in nats: 0 is memorised.
    deviation_*:   the loss against what is predicted for a model that has memorised everything: 0.1 is a tenth above.
    explained:     the same with the model's test accuracy in place of a, which leaves only how confident it is.
    position_*:    where it lies between that (1) and the loss of a model that has learned only averages (0).
    """
    a, p = float(trial.labels["a"]), float(trial.labels["p"])
    test = run.predictions("test")
    classes = test.logits.shape[-1]
    clean, beta = both_losses(test.logits, test.labels, a)
    gamma = both_losses(test.logits, test.labels, p)[1]  # a share p of every test target lies on the label
    measured = {
        "loss_alpha": clean,
        "loss_beta": beta,
        "loss_gamma": gamma,
        "accuracy": accuracy(test),
        "early_loss": min(float(row["test_loss"]) for row in run.history()),
        **over_epochs(run),
        "left": float(run.summary["train_loss"]) - target_entropy(p, classes),
    }
    if p < 1:  # where the predicted loss is not finite there is nothing to deviate from
        known = generalization_loss(p, measured["accuracy"], classes, "alpha", limits=True)
        measured["explained"] = clean / known - 1
        for kind in KINDS:
            measured |= beside_theory(kind, measured[f"loss_{kind}"], a, p, classes)
    return measured


def beside_theory(kind: str, loss: float, a: float, p: float, classes: int) -> dict[str, float]:
    """How a loss of one type deviates from its prediction, and its position between both extremes; for p below 1."""
    predicted = generalization_loss(p, a, classes, kind, limits=True)
    averaging = averaging_loss(p, a, classes, kind, limits=True)
    found = {f"deviation_{kind}": loss / predicted - 1}
    if predicted - averaging > 1e-9:
        found[f"position_{kind}"] = (loss - averaging) / (predicted - averaging)
    return found


def with_gamma(results: Results, classes: int) -> Results:
    r"""Runs that were measured before the gamma type was, with it as far as it follows from what was measured.

    All three losses are made of two means over the test set, the cost of the label and that of the other classes.
    With labels that are wrong in a share 1 - a the alpha and the beta type give both:

    .. math:: \ell_\gamma = p\,\ell_\alpha + (1 - p)\,\frac{\ell_\beta - a\,\ell_\alpha}{1 - a}

    Without noise, a = 1, beta says nothing more than alpha, and gamma stays unknown.
    """
    return replace(results, outcomes=tuple(_with_gamma(outcome, classes) for outcome in results.outcomes))


def _with_gamma(outcome: Outcome, classes: int) -> Outcome:
    known, (a, p) = outcome.measures, (float(outcome.trial.labels[key]) for key in ("a", "p"))
    if "loss_gamma" in known or a == 1 or not {"loss_alpha", "loss_beta"} <= known.keys():
        return outcome
    others = (known["loss_beta"] - a * known["loss_alpha"]) / (1 - a)
    loss = p * known["loss_alpha"] + (1 - p) * others
    found = {"loss_gamma": loss} | (beside_theory("gamma", loss, a, p, classes) if p < 1 else {})
    return replace(outcome, measures={**known, **found})


class TrainingLoss:
    """Measures the loss on training images against their clean labels, which the formula is about.

    The theory computes it for the examples a model was trained on and takes test examples to fare alike (section 2).
    The distance of the loss on training images from the prediction comes from labels that were not memorised; the
    distance of the loss on test images from that is generalisation.

    deviation_trained: the loss on training images against what is predicted: 0.1 is a tenth above.
    """

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """For a run with smoothing; without there is no prediction."""
        a, p = float(trial.labels["a"]), float(trial.labels["p"])
        if p >= 1:
            return {}
        logits, clean = self._nets.on_training_images(run, trial.recipe, trial.recipe.data, TRAINED)
        predicted = generalization_loss(p, a, logits.shape[-1], "alpha", limits=True)
        return {"deviation_trained": both_losses(logits, clean, 1.0)[0] / predicted - 1}


def both_losses(logits: Tensor, labels: Tensor, a: float) -> tuple[float, float]:
    """Mean cross-entropy with clean labels, and with labels that stay right with probability a.

    >>> import torch
    >>> both_losses(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]), a=1.0)[1]  # doctest: +ELLIPSIS
    0.2395...
    """
    costs = -logits.double().log_softmax(-1)
    right = costs.gather(-1, labels.long()[:, None]).squeeze(-1)
    others = (costs.sum(-1) - right) / (logits.shape[-1] - 1)
    return float(right.mean()), float((a * right + (1 - a) * others).mean())


def target_entropy(p: float, classes: int) -> float:
    """Entropy of a smoothed target in nats: what is left of the training loss when all is memorised.

    >>> import math
    >>> target_entropy(0.5, 2) == math.log(2), target_entropy(1.0, 10)
    (True, 0.0)
    """
    shares: Any = np.array([p, *[(1 - p) / (classes - 1)] * (classes - 1)])
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum()) + 0.0
