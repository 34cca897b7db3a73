"""The figure of the distillation study, with the numbers it shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from softtargets.claims import Sample
from softtargets.report import Curve, Figure, Line, Marker, Panel, lines
from softtargets.report.drawing import BLUE, GREEN, PURPLE, RED
from softtargets.studies.mnist_distillation.curves import (
    BASELINES,
    CURVES,
    OF_HARD,
    OF_SMOOTHED,
    Scenario,
    best,
)
from softtargets.studies.mnist_distillation.grid import TEMPERATURES
from softtargets.studies.results import Results, Row

# By the curve's name: colour, line and marker.
_LOOKS: Mapping[str, tuple[str, Line, Marker]] = {
    "M1": (BLUE, "solid", "circle"),
    "M2": (GREEN, "solid", "square"),
    "M3": (RED, "dashed", "circle"),
    "M4": (PURPLE, "dashed", "square"),
}
_ACCURACY = "test accuracy, %"


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
    return lines(
        "distillation",
        "Distillation from networks of 1200 units a layer to networks of 800, on MNIST.",
        (_against_smoothness(results), _against_temperature(results, alone, of_smoothed)),
        rows,
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. Gamma is the mass that the "
        "targets put on wrong digits, counted as a strength of label smoothing: alpha itself for M1 and M2, for M3 and "
        "M4 measured on the teacher's predictions for the training digits. M3 at T = 1 and M4 at alpha 0 are the same "
        "students.",
        "Test accuracy of teachers, of students alone and of students of hard and of smoothed teachers over the "
        "smoothness index; beside it the students of the hard teacher over temperature.",
    )


def _against_smoothness(results: Results) -> Panel:
    curves = []
    for curve in CURVES:
        gammas = [sample.mean for sample in curve.samples(results, "gamma")]
        known = [
            both
            for both in zip(gammas, curve.samples(results, "accuracy"), strict=True)
            if not math.isnan(both[0])
        ]
        curves.append(_curve(curve, *(zip(*known, strict=True) if known else ((), ()))))
    return Panel("All four against smoothness", "smoothness index gamma", _ACCURACY, curves, digits=2)


def _against_temperature(results: Results, alone: Row, of_smoothed: Row) -> Panel:
    ends = (-0.2, len(TEMPERATURES) - 0.8)
    levels = [
        Curve.level(
            f"{curve.name} at its best, alpha {point['alpha']:g}",
            _LOOKS[curve.name][0],
            100 * results.sample("accuracy", **point).mean,
            ends,
            "dotted",
        )
        for curve, point in ((BASELINES, alone), (OF_SMOOTHED, of_smoothed))
    ]
    taught = _curve(OF_HARD, range(len(TEMPERATURES)), OF_HARD.samples(results, "accuracy"))
    ticks = [(place, f"{temperature:g}") for place, temperature in enumerate(TEMPERATURES)]
    name = "temperature of the hard teacher"
    return Panel("M3 against temperature", name, _ACCURACY, (taught, *levels), ticks, xlimits=ends, digits=2)


def _curve(curve: Scenario, x: Iterable[float], samples: Iterable[Sample]) -> Curve:
    colour, line, marker = _LOOKS[curve.name]
    return Curve.of(f"{curve.name}: {curve.title}", colour, x, samples, scale=100, line=line, marker=marker)
