"""The four curves of the figure, as the points that lie on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softtargets.claims import Sample
from softtargets.exceptions import StudyError
from softtargets.studies.mnist_distillation.grid import ALPHAS, TEMPERATURES
from softtargets.studies.results import Results

Labels = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A scenario of Müller et al., section 4: its name there, what it is, and the labels of its points."""

    name: str
    title: str
    points: tuple[Labels, ...]

    def samples(self, results: Results, measure: str) -> list[Sample]:
        """One measure along the curve."""
        return [results.sample(measure, **labels) for labels in self.points]


def labels_of(role: str, alpha: float, temperature: float | None = None) -> Labels:
    """Labels of points: teachers on the first curve, baselines (no teacher) on the second, students on the others.

    >>> labels_of("teacher", 0.1)
    {'role': 'teacher', 'alpha': 0.1}
    """
    return {"role": role, "alpha": alpha} | ({} if temperature is None else {"temperature": temperature})


TEACHERS, BASELINES = (
    Scenario(name, title, tuple(labels_of(role, alpha) for alpha in ALPHAS))
    for name, title, role in (
        ("M1", "teacher, label smoothing", "teacher"),
        ("M2", "student alone, label smoothing", "baseline"),
    )
)
OF_HARD, OF_SMOOTHED = (
    Scenario(name, title, tuple(labels_of("student", *point) for point in points))
    for name, title, points in (
        ("M3", "student of the hard teacher, T = 1 to 16", [(0.0, t) for t in TEMPERATURES]),
        ("M4", "student of a smoothed teacher, T = 1", [(alpha, 1.0) for alpha in ALPHAS]),
    )
)
CURVES = (TEACHERS, BASELINES, OF_HARD, OF_SMOOTHED)


def best(results: Results, points: Sequence[Labels]) -> Labels:
    """The point with the lowest mean error; a point without a finished run is none."""
    found = {place: results.sample("error", **labels) for place, labels in enumerate(points)}
    finished = {place: sample.mean for place, sample in found.items() if sample.n}
    if not finished:
        raise StudyError(
            f"no finished run with {dict(points[0])}, nor any beside it on its curve; "
            "see the failed runs with `softtargets runs list`"
        )
    return points[min(finished, key=lambda place: finished[place])]
