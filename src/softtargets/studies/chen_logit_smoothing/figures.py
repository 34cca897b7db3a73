"""The figure of the study of logit smoothing, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.report import Figure
from softtargets.report.drawing import BLUE, GREEN, GREY, RED, Axes, Drawing
from softtargets.studies.chen_logit_smoothing.grid import METHODS
from softtargets.studies.drawing import curve, legend, panel_rows
from softtargets.studies.results import Results, Row, matching

_COLOURS = dict(zip(METHODS, (BLUE, RED, GREEN, GREY), strict=True))
_MEASURES = {
    "loss": "test loss, nats",
    "loss_trained": "test loss as trained, nats",
    "accuracy": "test accuracy, %",
}


def four_ways(results: Results) -> Figure:
    """Loss and accuracy over p, a row for each clean rate."""
    labels = ("a", "method", "p")
    cells = [dict(zip(labels, values, strict=True)) for values in sorted(results.cells(*labels))]
    rows = results.rows(cells, *_MEASURES, "early_accuracy", "by_heart")
    return Figure.of(
        "four_ways",
        "Test loss and accuracy with smoothed labels, smoothed logits, corrected outputs and none of these.",
        lambda: _draw(rows),
        rows,
        "Left: the model's own predictions. Middle: predictions passed through the matrix that it was trained with, "
        "which for smoothed labels are the same. p is the diagonal of the matrix; forward correction has the true one, "
        "p = a. Mean and standard deviation over seeds.",
        "Test loss, test loss as trained, and test accuracy over p for four methods, a row for each clean rate.",
    )


def _draw(rows: Sequence[Row]) -> Drawing:
    rates = list(dict.fromkeys(row["a"] for row in rows))
    drawing, grid = panel_rows(len(rates), len(_MEASURES), width=10.4, height=3.0 * len(rates) + 0.4)
    for line, a in zip(grid, rates, strict=True):
        for axes, (key, title) in zip(line, _MEASURES.items(), strict=True):
            _draw_methods(axes, matching(rows, a=a), key)
            axes.set(xlabel="p", ylabel=title, title=f"a = {a:g}")
    legend(drawing, grid[0][0], ncols=4)
    return drawing


def _draw_methods(axes: Axes, rows: Sequence[Row], key: str) -> None:
    scale = 100 if key == "accuracy" else 1
    for method, colour in _COLOURS.items():
        mine = matching(rows, method=method)
        if method.endswith("smoothing"):
            curve(axes, mine, "p", key, colour, method, scale=scale)
        elif mine:
            axes.axhline(scale * mine[0][key].mean, color=colour, linestyle="--", label=method)
