"""The figure of the distillation study, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.report import Figure
from softtargets.report.drawing import BLUE, GREEN, PURPLE, RED, Drawing
from softtargets.studies.drawing import errorbars, legend, panels
from softtargets.studies.mnist_distillation.curves import BASELINES, CURVES, OF_HARD, OF_SMOOTHED, best
from softtargets.studies.mnist_distillation.grid import TEMPERATURES
from softtargets.studies.results import Results, Row

# By the curve's name: colour, and line and marker.
_LOOKS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "M1": (BLUE, {"line": "-", "marker": "o"}),
    "M2": (GREEN, {"line": "-", "marker": "s"}),
    "M3": (RED, {"line": "--", "marker": "o"}),
    "M4": (PURPLE, {"line": "--", "marker": "s"}),
}


def distillation(results: Results) -> Figure:
    """Müller et al., figure 5, for the models of the replication's figure 7."""
    rows = (
        {
            "curve": curve.name,
            "what": curve.title,
            "alpha": labels["alpha"],
            "temperature": labels.get("temperature"),
            **{key: results.sample(key, **labels) for key in ("gamma", "accuracy", "error")},
        }
        for curve in CURVES
        for labels in curve.points
    )
    alone, of_smoothed = best(results, BASELINES.points), best(results, OF_SMOOTHED.points[1:])
    return Figure.of(
        "distillation",
        "Distillation on MNIST, from models with layers of 1200 units to models with layers of 800.",
        lambda: _draw(results, alone, of_smoothed),
        rows,
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. gamma is the mass that the "
        "targets put on wrong digits, expressed as a strength of label smoothing: alpha itself for M1 and M2, and "
        "measured on the teacher's outputs for the training digits for M3 and M4. M3 at T = 1 and M4 at alpha 0 are "
        "the same students.",
        "Test accuracy of teachers, of students alone and of students of hard and of smoothed teachers over the "
        "smoothness index; beside it the students of the hard teacher over temperature.",
    )


def _draw(results: Results, alone: Row, of_smoothed: Row) -> Drawing:
    drawing, (left, right) = panels(2, width=9.6, height=4.3, ratios=(1.35, 1))
    for curve in CURVES:
        colour, look = _LOOKS[curve.name]
        gammas = [sample.mean for sample in curve.samples(results, "gamma")]
        accuracies = curve.samples(results, "accuracy")
        errorbars(left, gammas, accuracies, colour, f"{curve.name}: {curve.title}", scale=100, **look)
    left.set(title="All four against smoothness", xlabel="smoothness index gamma")
    colour, look = _LOOKS[OF_HARD.name]
    places = range(len(TEMPERATURES))
    errorbars(right, places, OF_HARD.samples(results, "accuracy"), colour, "_M3 again", scale=100, **look)
    for curve, point, line in ((BASELINES, alone, ":"), (OF_SMOOTHED, of_smoothed, "-.")):
        level = 100 * results.sample("accuracy", **point).mean
        label = f"{curve.name} at its best, alpha {point['alpha']:g}"
        right.axhline(level, color=_LOOKS[curve.name][0], linestyle=line, linewidth=1.6, label=label)
    right.set_xticks(list(places), [f"{temperature:g}" for temperature in TEMPERATURES])
    right.set(title="M3 against temperature", xlabel="temperature of the hard teacher")
    for axes in (left, right):
        axes.set_ylabel("test accuracy, %")
    legend(drawing, left, right, ncols=2)
    return drawing
