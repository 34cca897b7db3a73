"""Measurements that several studies make on a run, and its model where stored predictions are not enough.

Whatever is said of a finished model (accuracy, likelihood, calibration) comes from its stored predictions. What was
logged while it trained, on a GPU by compiled code that rounds differently, serves for courses over epochs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.recipes import Dataset, Recipe
from softtargets.runs import Predictions, Run, RunStore
from softtargets.studies.study import Place

if TYPE_CHECKING:
    from softtargets.training.scheduling import Resources


def accuracy(predictions: Predictions) -> float:
    """The share of examples whose largest logit is that of their label."""
    return float(right(predictions).double().mean())


def right(predictions: Predictions) -> Tensor:
    """Of each example whether its largest logit is that of its label."""
    return predictions.logits.argmax(-1) == predictions.labels


def likelihood_and_calibration(logits: Tensor, labels: Tensor) -> dict[str, float]:
    """Mean negative log-likelihood in nats, and ECE with 15 bins."""
    return {
        "nll": float(F.cross_entropy(logits, labels)),
        "ece": expected_calibration_error(logits.softmax(-1), labels),
    }


def over_epochs(run: Run) -> dict[str, float]:
    """The highest test accuracy of any epoch, and the share of training labels that the model gives at the end."""
    return {
        "early_accuracy": max(float(row["test_accuracy"]) for row in run.history()),
        "by_heart": float(run.summary["train_accuracy"]),
    }


class TrainedNets:
    """Data and models of a study's runs, loaded when they are first asked for."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def supplies(self, run: Run) -> Resources:
        """What the runs of one store were trained with, on the device of the study; loaded once in a place."""
        from softtargets.training import choose_device
        from softtargets.training.scheduling import Resources

        place, root = self._place, run.directory.parent
        if root not in place.supplies:
            place.supplies[root] = Resources(RunStore(root), choose_device(place.device), place.data_dir)
        return place.supplies[root]

    def on_training_images(
        self, run: Run, recipe: Recipe, data: Dataset, most: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the finished model of `recipe` predicts for training images without augmentation, and their labels.

        run:  any run of the same store.
        data: whose training images.
        most: only so many, the first ones.
        """
        said = self.on_images(run, recipe, data, "train", most)
        return said["logits"].cpu(), said["labels"].cpu()

    def on_images(
        self, run: Run, recipe: Recipe, data: Dataset, split: str, most: int | None = None
    ) -> dict[str, Tensor]:
        """The same of any split, with penultimate activations; all on the device of the study."""
        from softtargets.training import float32_products
        from softtargets.training.tasks.images import ImageTask

        supplies = self.supplies(run)
        task, images = supplies.task(recipe.data), supplies.task(data).splits[split]
        assert isinstance(task, ImageTask)
        part = images.first(len(images) if most is None else most)
        with float32_products(recipe.precision):
            return task.say(recipe, supplies.finished(recipe), part)
