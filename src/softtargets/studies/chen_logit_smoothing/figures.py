"""The figure of the study of logit smoothing, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.report import Curve, Figure, Line, Panel, lines
from softtargets.report.drawing import BLUE, GREEN, GREY, RED
from softtargets.studies.chen_logit_smoothing.grid import METHODS
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
    return lines(
        "four_ways",
        "Test loss and accuracy with smoothed labels, smoothed logits, corrected outputs and none of these.",
        _panels(rows),
        rows,
        "Test loss: of what the network says. Test loss as trained: of what it says through the matrix it was trained "
        "with, which for smoothed labels is the same. p is the diagonal of the matrix; forward correction has the true "
        "one, p = a. Mean and standard deviation over seeds.",
        "Test loss, test loss as trained, and test accuracy over p for four methods, a row for each clean rate.",
    )


def _panels(rows: Sequence[Row]) -> list[Panel]:
    """A row for each clean rate."""
    rates = list(dict.fromkeys(row["a"] for row in rows))
    return [
        Panel(f"a = {a:g}: {title.split(',')[0]}", "p", title, _curves(matching(rows, a=a), key))
        for a in rates
        for key, title in _MEASURES.items()
    ]


def _curves(rows: Sequence[Row], key: str) -> list[Curve]:
    scale = 100 if key == "accuracy" else 1
    masses = [row["p"] for row in rows if row["method"].endswith("smoothing")]
    ends = (min(masses, default=0.0), max(masses, default=1.0))
    found = []
    for method, colour in _COLOURS.items():
        mine = matching(rows, method=method)
        if method.endswith("smoothing"):
            places = [row["p"] for row in mine]
            found.append(Curve.of(method, colour, places, [row[key] for row in mine], scale=scale))
        elif mine:
            line: Line = "dotted" if method == "none" else "dashed"
            found.append(Curve.level(method, colour, scale * mine[0][key].mean, ends, line))
    return found
