"""The four curves of the figure, as the points that lie on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def teacher(alpha: float) -> Labels:
    """Labels of the teachers on the first curve."""
    return {"role": "teacher", "alpha": alpha}


def baseline(alpha: float) -> Labels:
    """Labels of the nets on the second curve: as small as a student, and without a teacher."""
    return {"role": "baseline", "alpha": alpha}


def student(alpha: float, temperature: float) -> Labels:
    """Labels of the students of a teacher, on the third curve or the fourth."""
    return {"role": "student", "alpha": alpha, "temperature": temperature}


def _over_alpha(labels: Callable[[float], Labels]) -> tuple[Labels, ...]:
    return tuple(labels(alpha) for alpha in ALPHAS)


TEACHERS = Scenario("M1", "teacher, label smoothing", _over_alpha(teacher))
BASELINES = Scenario("M2", "student alone, label smoothing", _over_alpha(baseline))
OF_HARD = Scenario(
    "M3", "student of the hard teacher, T = 1 to 16", tuple(student(0.0, t) for t in TEMPERATURES)
)
OF_SMOOTHED = Scenario(
    "M4", "student of a smoothed teacher, T = 1", _over_alpha(lambda alpha: student(alpha, 1.0))
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
