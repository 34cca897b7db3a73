"""What studies of distillation share: curves M1 to M4 of Müller et al. 2019, figure 5, and gamma, their axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from softtargets.claims import Sample
from softtargets.distillation import smoothness_index as index_of_probabilities
from softtargets.exceptions import StudyError
from softtargets.recipes import Dataset, Distillation, Recipe
from softtargets.report import Curve, Line, Marker, Panel
from softtargets.report.drawing import BLUE, GREEN, PURPLE, RED
from softtargets.runs import Run
from softtargets.studies.measures import TrainedNets
from softtargets.studies.results import Results, Row
from softtargets.studies.study import Place, Trial

# By the curve's name: colour, line and marker.
LOOKS: Mapping[str, tuple[str, Line, Marker]] = {
    "M1": (BLUE, "solid", "circle"),
    "M2": (GREEN, "solid", "square"),
    "M3": (RED, "dashed", "circle"),
    "M4": (PURPLE, "dashed", "square"),
}


@dataclass(frozen=True)
class Scenario:
    """A scenario of Müller et al., section 4: its name there, what it is, and the labels of its points."""

    name: str
    title: str
    points: list[Row]

    def samples(self, results: Results, measure: str) -> list[Sample]:
        """One measure along the curve."""
        return [results.sample(measure, **labels) for labels in self.points]


def best(results: Results, points: list[Row], measure: str = "error") -> Row:
    """The point with the lowest mean of a measure; a point without a finished run is none."""
    finished = [labels for labels in points if results.sample(measure, **labels).n]
    if not finished:
        raise StudyError(
            f"there is no finished run with {points[0]}, nor any other on its curve; `softtargets runs list` shows "
            "the failed runs"
        )
    return min(finished, key=lambda labels: results.sample(measure, **labels).mean)


def chosen(results: Results, points: list[Row], measure: str = "error") -> Row | None:
    """The best of all points; None as long as one of them is still to be trained, or if all of them failed.

    Runs end pack by pack, and neighbours together: the best of what happens to be there is not the best.
    """
    if any(results.lacks(**labels) for labels in points):
        return None
    try:
        return best(results, points, measure)
    except StudyError:
        return None


def curve_of(scenario: Scenario, x: Iterable[float], samples: Iterable[Sample]) -> Curve:
    """A scenario's samples over x, in per cent and in its own look."""
    colour, line, marker = LOOKS[scenario.name]
    name = f"{scenario.name}: {scenario.title}"
    return Curve.of(name, colour, x, samples, scale=100, line=line, marker=marker)


def against_smoothness(
    results: Results, scenarios: Sequence[Scenario], measure: str = "accuracy", y: str = "test accuracy, %"
) -> Panel:
    """All curves over gamma; points whose gamma is not known yet are left out."""
    curves = []
    for scenario in scenarios:
        gammas = [sample.mean for sample in scenario.samples(results, "gamma")]
        known = [
            both
            for both in zip(gammas, scenario.samples(results, measure), strict=True)
            if not math.isnan(both[0])
        ]
        curves.append(curve_of(scenario, *(zip(*known, strict=True) if known else ((), ()))))
    return Panel("All four against smoothness", "smoothness index gamma", y, curves, digits=2)


def smoothness_index(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """The smoothness index of what logits say at a temperature.

    >>> import torch
    >>> flat = torch.zeros(2, 10)
    >>> round(smoothness_index(flat, torch.tensor([3, 8])), 6)
    1.0
    """
    return index_of_probabilities((logits.double() / temperature).softmax(-1), labels)


class Smoothness:
    """Measures gamma on students of soft targets; what a teacher says is read or computed once."""

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
            self._said[key] = self._asked(run, teacher, data)
        return {"gamma": smoothness_index(*self._said[key], soft.temperature)}

    def _asked(self, run: Run, teacher: Recipe, data: Dataset) -> tuple[Tensor, Tensor]:
        """The teacher's logits and the labels as read: what its run kept of training images, else from its weights."""
        # A student's teacher lies beside it, in the same store.
        taught = Run(run.directory.parent / teacher.id)
        if teacher.data == data and taught.has_predictions("train"):
            kept = taught.predictions("train")
            return kept.logits, kept.labels if kept.clean_labels is None else kept.clean_labels
        return self._nets.on_training_images(run, teacher, data)
