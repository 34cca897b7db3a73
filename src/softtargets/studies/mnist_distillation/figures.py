"""The figure of the distillation study, with the numbers it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, GREEN, PURPLE, RED
from softtargets.studies.mnist_distillation.curves import (
    BASELINES,
    CURVES,
    OF_HARD,
    OF_SMOOTHED,
    best,
)
from softtargets.studies.mnist_distillation.grid import TEMPERATURES
from softtargets.studies.plotting import errorbars, panels
from softtargets.studies.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

# By the curve's name: colour, line, marker.
_LOOKS = {
    "M1": (BLUE, "-", "o"),
    "M2": (GREEN, "-", "s"),
    "M3": (RED, "--", "o"),
    "M4": (PURPLE, "--", "s"),
}


def distillation(results: Results) -> Figure:
    """Müller et al., figure 5, for the nets of the replication's figure 7."""
    rows = tuple(
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

    def draw() -> Drawing:
        drawing, (left, right) = panels(2, width=9.6, height=4.3, ratios=(1.35, 1))
        for curve in CURVES:
            colour, line, marker = _LOOKS[curve.name]
            gammas = [sample.mean for sample in curve.samples(results, "gamma")]
            errorbars(
                left,
                gammas,
                curve.samples(results, "accuracy"),
                colour,
                f"{curve.name}: {curve.title}",
                scale=100,
                line=line,
                marker=marker,
            )
        left.set(
            title="All four against smoothness", xlabel="smoothness index gamma", ylabel="test accuracy, %"
        )
        colour, line, marker = _LOOKS[OF_HARD.name]
        places = range(len(TEMPERATURES))
        errorbars(
            right,
            places,
            OF_HARD.samples(results, "accuracy"),
            colour,
            "_M3 again",
            scale=100,
            line=line,
            marker=marker,
        )
        for curve, point, line in ((BASELINES, alone, ":"), (OF_SMOOTHED, of_smoothed, "-.")):
            level = 100 * results.sample("accuracy", **point).mean
            right.axhline(
                level,
                color=_LOOKS[curve.name][0],
                linestyle=line,
                linewidth=1.6,
                label=f"{curve.name} at its best, alpha {point['alpha']:g}",
            )
        right.set_xticks(list(places), [f"{temperature:g}" for temperature in TEMPERATURES])
        right.set(
            title="M3 against temperature",
            xlabel="temperature of the hard teacher",
            ylabel="test accuracy, %",
        )
        handles = [axes.get_legend_handles_labels() for axes in (left, right)]
        drawing.legend(
            handles[0][0] + handles[1][0],
            handles[0][1] + handles[1][1],
            loc="outside lower center",
            ncols=2,
        )
        return drawing

    columns = (
        Column("curve", "curve"),
        Column("what", "what"),
        Column("alpha", "alpha", 2),
        Column("temperature", "temperature", 0),
        Column("gamma", "gamma"),
        Column("accuracy", "test accuracy", 4, percent=True),
        Column("error", "test error", 4, percent=True),
    )
    return Figure(
        "distillation",
        "Distillation from nets of 1200 units a layer to nets of 800, on MNIST.",
        draw,
        Table("distillation", "The four curves", columns, rows),
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. gamma is the mass that the "
        "targets put on wrong digits, counted as a strength of label smoothing: alpha itself for M1 and M2, for M3 and "
        "M4 measured on what the teacher says of the training digits. M3 at T = 1 and M4 at alpha 0 are the same "
        "students.",
        "Test accuracy of teachers, of students alone and of students of hard and of smoothed teachers over the "
        "smoothness index; beside it the students of the hard teacher over temperature.",
    )
