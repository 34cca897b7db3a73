"""Reliability of two files in one diagram, and their error rates over coverage in another."""

from __future__ import annotations

from softtargets.calibration.drawing import draw_reliability
from softtargets.inspection.shared.coverage_figure import coverage_figure
from softtargets.inspection.shared.numbers import LEVEL
from softtargets.inspection.shared.reliability_figures import COLOURS, Files, reliability_figure
from softtargets.report import Figure
from softtargets.report.drawing import Drawing, canvas, plain


def overlaid(files: Files) -> Figure:
    """Both diagrams, one over the other."""
    return reliability_figure(
        files,
        {name: one.before.reliability for name, one in files.items()},
        lambda: _draw(files),
        "How often predictions of a given confidence are right. The area of a point is its share of the examples; thin "
        "lines are 95 % intervals. Move the temperature to see what scaling does to both.",
        "Accuracy over confidence of both files.",
    )


def rejecting_figure(files: Files) -> Figure:
    """Error rates of both if only the most confident predictions are used."""
    return coverage_figure(
        {name: one.selection.curve for name, one in files.items()},
        COLOURS,
        "How often the most confident predictions of each model are wrong, over the share of predictions that are "
        "used. Bands are 95 % intervals of each model by itself.",
        best=False,
    )


def _draw(files: Files) -> Drawing:
    figure = canvas(4.8, 4.6)
    axes = figure.subplots()
    shown = {plain(name): one.before.reliability for name, one in files.items()}
    draw_reliability(axes, shown, dict(zip(shown, COLOURS, strict=True)), level=LEVEL)
    axes.legend(loc="upper left")
    return figure
