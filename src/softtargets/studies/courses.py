"""Courses of a training over its epochs: means over seeds with a band from the lowest seed to the highest."""

from __future__ import annotations

from collections.abc import Mapping

from softtargets.claims import Sample
from softtargets.report import Curve, Line
from softtargets.studies.results import Results


def by_epoch(results: Results, measure: str = "test_accuracy") -> dict[int, Sample]:
    """What was logged at the ends of epochs, over seeds; of several measurements in an epoch the last counts.

    Epochs that were not measured are not there.
    """
    outcomes = sorted(results.outcomes, key=lambda outcome: outcome.seed)
    courses = [
        {int(row["epoch"]): float(row[measure]) for row in outcome.run.history()} for outcome in outcomes
    ]
    epochs = sorted({epoch for course in courses for epoch in course})
    return {epoch: Sample.of(course[epoch] for course in courses if epoch in course) for epoch in epochs}


def band(
    name: str, colour: str, course: Mapping[int, Sample], *, scale: float = 100, line: Line = "solid"
) -> Curve:
    """The means, and from the lowest seed to the highest; in per cent unless told.

    >>> band("accuracy", "#000000", {1: Sample.of([0.5, 0.7])}).high
    [70.0]
    """
    low, high = ([scale * end(sample.values) for sample in course.values()] for end in (min, max))
    means = [scale * sample.mean for sample in course.values()]
    return Curve(name, colour, list(course), means, low, high, line=line)
