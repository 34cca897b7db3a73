"""What the studies of LABO measure on a run: the same numbers in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from softtargets.calibration import fit_temperature
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import CrossEntropy
from softtargets.runs import Run
from softtargets.studies.measures import TrainedNets, accuracy, likelihood_and_calibration
from softtargets.studies.study import Place, Trial

# Training images on which the probability of the label is averaged, and seeds whose steps are timed.
TRAINING_IMAGES, TIMED_SEEDS = 10_000, 3
# Turns of each training that is timed, and seconds of a turn.
TURNS, SECONDS = 25, 0.02
# Equal parts of the probabilities from 0 to 1.
PARTS = 20


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """On the test images: accuracy, likelihood, calibration, what the label gets; the same at a fitted temperature.

    The temperature is the one with the best likelihood on the held-out images; without any there is none.
    """
    test = run.predictions("test")
    measured = {
        "accuracy": accuracy(test),
        **likelihood_and_calibration(test.logits, test.labels),
        "label_probability": float(label_probabilities(test.logits, test.labels).mean()),
    }
    if run.has_predictions("validation"):
        held_out = run.predictions("validation")
        temperature = fit_temperature(held_out.logits, held_out.labels)
        scaled = likelihood_and_calibration(test.logits / temperature, test.labels)
        measured |= {"temperature": temperature, **{f"{key}_scaled": value for key, value in scaled.items()}}
    return measured


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """How the probabilities of the label are spread over the test images: the share in each of 20 equal parts."""
    test = run.predictions("test")
    counts, _ = np.histogram(label_probabilities(test.logits, test.labels).numpy(), PARTS, (0, 1))
    return {"label_probabilities": [round(float(count) / len(test.labels), 5) for count in counts]}


def label_probabilities(logits: Tensor, labels: Tensor) -> Tensor:
    """What the model gives the label of each example."""
    return logits.double().softmax(-1).gather(1, labels.long().unsqueeze(1)).squeeze(1)


class OnTrainingImages:
    """The average probability of the label on the first 10,000 training images, without augmentation.

    Of the given labels, wrong ones included; `TrainedNets` gives the clean ones, so this is for clean data.
    """

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """Nothing where the network's weights or the images are not there."""
        try:
            logits, labels = self._nets.on_training_images(
                run, trial.recipe, trial.recipe.data, TRAINING_IMAGES
            )
        except SofttargetsError:
            return {}
        return {"label_probability_train": float(label_probabilities(logits, labels).mean())}


class RelativeTime:
    """How long a step takes, as a multiple of a step with hard targets.

    Both train alone on the device of the study, in 25 turns within this process, and the fastest turns are compared:
    whatever else the machine does only makes a turn slower. The seconds of the runs themselves say nothing about a
    method, since runs of a pack share the device.
    """

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)
        self._hard: dict[str, Any] = {}

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """Of the first three seeds, and not of teachers; nothing where images or a teacher are not there."""
        from softtargets.training import TimedTraining, seconds_in_turns

        recipe = trial.recipe
        if recipe.seed >= TIMED_SEEDS or trial.labels["model"] == "teacher":
            return {}
        hard = recipe.replace({"regulariser": CrossEntropy(), "seed": 0})
        try:
            supplies = self._nets.supplies(run)
            if hard.id not in self._hard:
                self._hard = {hard.id: TimedTraining(hard, supplies)}  # one at a time: each takes memory
            timed = TimedTraining(recipe, supplies)
        except SofttargetsError:
            return {}
        other, own = (min(turns) for turns in seconds_in_turns([self._hard[hard.id], timed], TURNS, SECONDS))
        return {"relative_time": own / other, "step_seconds": own}
