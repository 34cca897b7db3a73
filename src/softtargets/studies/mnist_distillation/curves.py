"""The four curves of the figure, as the points that lie on them."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.claims import Sample
from softtargets.exceptions import StudyError
from softtargets.studies.mnist_distillation.grid import ALPHAS, TEMPERATURES
from softtargets.studies.results import Results, Row, over


@dataclass(frozen=True)
class Scenario:
    """A scenario of Müller et al., section 4: its name there, what it is, and the labels of its points."""

    name: str
    title: str
    points: list[Row]

    def samples(self, results: Results, measure: str) -> list[Sample]:
        """One measure along the curve."""
        return [results.sample(measure, **labels) for labels in self.points]


TEACHERS = Scenario("M1", "teacher, label smoothing", over(role=["teacher"], alpha=ALPHAS))
BASELINES = Scenario("M2", "student alone, label smoothing", over(role=["baseline"], alpha=ALPHAS))
OF_HARD = Scenario(
    "M3",
    "student of the hard teacher, T = 1 to 16",
    over(role=["student"], alpha=[0.0], temperature=TEMPERATURES),
)
OF_SMOOTHED = Scenario(
    "M4",
    "student of a smoothed teacher, T = 1",
    over(role=["student"], alpha=ALPHAS, temperature=[1.0]),
)
CURVES = (TEACHERS, BASELINES, OF_HARD, OF_SMOOTHED)


def best(results: Results, points: list[Row]) -> Row:
    """The point with the lowest mean error; a point without a finished run is none."""
    finished = [labels for labels in points if results.sample("error", **labels).n]
    if not finished:
        raise StudyError(
            f"no finished run with {points[0]}, nor any beside it on its curve; "
            "see the failed runs with `softtargets runs list`"
        )
    return min(finished, key=lambda labels: results.sample("error", **labels).mean)
