"""The figure of the distillation study, with the numbers it shows."""

from __future__ import annotations

from softtargets.report import Curve, Figure, Panel, lines
from softtargets.studies.distilling import LOOKS, against_smoothness, best, curve_of
from softtargets.studies.mnist_distillation.curves import BASELINES, CURVES, OF_HARD, OF_SMOOTHED
from softtargets.studies.mnist_distillation.grid import TEMPERATURES
from softtargets.studies.results import Results, Row

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
        (against_smoothness(results, CURVES), _against_temperature(results, alone, of_smoothed)),
        rows,
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. Gamma is the mass that the "
        "targets put on wrong digits, counted as a strength of label smoothing: alpha itself for M1 and M2, for M3 and "
        "M4 measured on the teacher's predictions for the training digits. M3 at T = 1 and M4 at alpha 0 are the same "
        "students.",
        "Test accuracy of teachers, of students alone and of students of hard and of smoothed teachers over the "
        "smoothness index; beside it the students of the hard teacher over temperature.",
    )


def _against_temperature(results: Results, alone: Row, of_smoothed: Row) -> Panel:
    ends = (-0.2, len(TEMPERATURES) - 0.8)
    levels = [
        Curve.level(
            f"{curve.name} at its best, alpha {point['alpha']:g}",
            LOOKS[curve.name][0],
            100 * results.sample("accuracy", **point).mean,
            ends,
            "dotted",
        )
        for curve, point in ((BASELINES, alone), (OF_SMOOTHED, of_smoothed))
    ]
    taught = curve_of(OF_HARD, range(len(TEMPERATURES)), OF_HARD.samples(results, "accuracy"))
    ticks = [(place, f"{temperature:g}") for place, temperature in enumerate(TEMPERATURES)]
    name = "temperature of the hard teacher"
    return Panel("M3 against temperature", name, _ACCURACY, (taught, *levels), ticks, xlimits=ends, digits=2)
