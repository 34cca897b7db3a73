"""What is read from each model, and how many of the labels it was trained on are right."""

from __future__ import annotations

import numpy as np

from softtargets.noise import observed_transitions
from softtargets.runs import Run
from softtargets.studies.chen_plane.measures import both_losses
from softtargets.studies.measures import TrainedNets, accuracy, over_epochs
from softtargets.studies.study import Place, Trial
from softtargets.theory import averaging_loss, effective_clean_rate, generalization_loss


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Loss against the clean test labels, accuracy at the end and at the best epoch, training labels given back."""
    test = run.predictions("test")
    return {
        "loss": both_losses(test.logits, test.labels, 1.0)[0],
        "accuracy": accuracy(test),
        **over_epochs(run),
    }


class CleanRate:
    """Counts the right ones among the training labels of a run, and says what the theory predicts from that.

    clean_rate: the share of labels that are right.
    effective:  the same with every class counted alike, the effective clean rate of section 4.4.
    predicted, averaging: losses of models that have memorised the labels, or only what they are on average.
    """

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """The rates, and the predictions for the trial's p."""
        supplies = self._nets.supplies(run)
        known = supplies.task(trial.recipe.replace({"data.labels": "clean"}).data)
        given, clean = (task.splits["train"].labels.cpu() for task in (supplies.noisy(trial.recipe), known))
        classes = len(known.classes)
        rate, p = float((clean == given).double().mean()), float(trial.labels["p"])
        T = observed_transitions(clean.numpy(), given.numpy(), classes)
        measured = {"clean_rate": rate}
        if not np.isnan(T).any():  # every class occurs
            measured["effective"] = float(effective_clean_rate(T))
        if p < 1:
            measured["predicted"] = generalization_loss(p, rate, classes, "alpha", limits=True)
            measured["averaging"] = averaging_loss(p, rate, classes, "alpha", limits=True)
        return measured
