"""Figure 6: information over the steps, read in two ways, and what is left of it at the end."""

from __future__ import annotations

import math
from typing import Literal

from softtargets.information import Evolution, EvolutionBand, band, evolution
from softtargets.report import Curve, Figure, Line, Panel, lines
from softtargets.report.drawing import BLUE, GREY, RED
from softtargets.studies.muller_figure_6.grid import COMPARED
from softtargets.studies.results import Results, Row

Inner = Literal["all", "others"]

_LOOKS: dict[float, tuple[str, str, Line]] = {
    0.0: ("hard targets", RED, "dashed"),
    0.15: ("label smoothing 0.15", BLUE, "solid"),
}
_NATS = "mutual information, nats"


def information(results: Results) -> Figure:
    """Over steps, against all examples and against the others; and at the end, over alpha."""
    courses = {
        (alpha, inner): _band(results, alpha, inner) for alpha in COMPARED for inner in ("all", "others")
    }
    rows: list[Row] = [
        {
            "alpha": alpha,
            "inner": inner,
            "step": step,
            "runs": count,
            "lowest": low,
            "mean": mean,
            "highest": high,
        }
        for (alpha, inner), found in courses.items()
        if found is not None
        for step, count, low, mean, high in zip(
            found.steps, found.counts, found.lowest, found.mean, found.highest, strict=True
        )
    ]
    panels = (
        _over_steps("Compared with all examples", {a: courses[a, "all"] for a in COMPARED}),
        _over_steps("Compared with the other examples", {a: courses[a, "others"] for a in COMPARED}),
        _at_the_end(results),
    )
    return lines(
        "information",
        "What the difference of two logits tells about its training image.",
        panels,
        rows,
        "Lines are means over seeds, bands reach from the lowest seed to the highest. Log 2 is what is left where "
        "images have collapsed to two clusters, one for each class; log N, where each of N images can be told from all "
        "others. Compared with the other examples alone there is no upper bound.",
        "Mutual information over training steps with hard targets and with label smoothing, estimated in two ways, and "
        "the information at the end over the strength of smoothing.",
    )


def _band(results: Results, alpha: float, inner: Inner) -> EvolutionBand | None:
    found: list[Evolution] = []
    for outcome in results.where(alpha=alpha).outcomes:
        try:
            found.append(evolution(outcome.run.history(), inner=inner))
        except ValueError:  # no look found a number
            continue
    return band(found) if found else None


def _over_steps(title: str, courses: dict[float, EvolutionBand | None]) -> Panel:
    curves, last, bounds = [], 1, {math.log(2)}
    for alpha, course in courses.items():
        if course is None:
            continue
        name, colour, line = _LOOKS[alpha]
        steps = list(course.steps)
        curves.append(Curve(name, colour, steps, course.mean, course.lowest, course.highest, line=line))
        last = max(last, steps[-1])
        bounds.add(course.bound)
    levels = [
        Curve.level(f"log {math.exp(bound):.0f}", GREY, bound, (0, last), "dotted")
        for bound in sorted(bounds)
    ]
    return Panel(title, "training step", _NATS, (*curves, *levels), limits=(0, None), digits=2)


def _at_the_end(results: Results) -> Panel:
    alphas = sorted(set(results.values("alpha")))
    curves = [
        Curve.of(name, colour, alphas, [results.sample(measure, alpha=alpha) for alpha in alphas], line=line)
        for name, measure, colour, line in _ENDS
    ]
    ends = (0.0, max([*alphas, COMPARED[1]]))
    level = Curve.level("log 2", GREY, math.log(2), ends, "dotted")
    return Panel("At the end of training", "alpha", _NATS, (*curves, level), limits=(0, None), digits=2)


_ENDS: tuple[tuple[str, str, str, Line], ...] = (
    ("at the end", "information", BLUE, "solid"),
    ("before the first drop of the rate, on average", "early", GREY, "dashed"),
)
