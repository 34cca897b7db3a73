"""How smooth the targets of a student are: what its teacher says of the training images, at its temperature."""

from __future__ import annotations

from torch import Tensor

from softtargets.distillation import smoothness_index as index_of_probabilities
from softtargets.recipes import Dataset, Distillation
from softtargets.runs import Run
from softtargets.studies.measures import TrainedNets
from softtargets.studies.study import Place, Trial


def smoothness_index(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """The smoothness index of what logits say at a temperature.

    >>> import torch
    >>> flat = torch.zeros(2, 10)
    >>> round(smoothness_index(flat, torch.tensor([3, 8])), 6)
    1.0
    """
    return index_of_probabilities((logits.double() / temperature).softmax(-1), labels)


class Smoothness:
    """Measures gamma on students of soft targets; what a teacher says is computed once, from its stored weights."""

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)
        self._said: dict[tuple[str, Dataset], tuple[Tensor, Tensor]] = {}

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """gamma of a student's targets, over its training images without augmentation."""
        soft, data, teacher = trial.recipe.regulariser, trial.recipe.data, trial.recipe.teacher
        if teacher is None or not isinstance(soft, Distillation) or soft.match != "probabilities":
            return {}
        key = (teacher.id, data)
        if key not in self._said:
            # A student's teacher lies beside it, in the same store.
            self._said[key] = self._nets.on_training_images(run, teacher, data)
        return {"gamma": smoothness_index(*self._said[key], soft.temperature)}
