"""The figures of the study as charts, made of what `figures` gathers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from softtargets.report import Curve, Line, Map, Panel
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED
from softtargets.studies.chen_forward_correction.grid import METHODS, Matrix
from softtargets.studies.results import Row, matching

MEASURES = {"loss": "test loss, nats", "accuracy": "test accuracy, %", "ece": "ECE, %"}
_COLOURS = dict(zip(METHODS, (GREY, ORANGE, RED, BLUE, GREEN), strict=True))
_TICKS = tuple(enumerate(("none", "uniform", "S = T", "Bayes", "forward")))
_WIDE = 0.32


def matrix_maps(shown: Mapping[tuple[str, float, str], Matrix]) -> list[Map]:
    """Maps by kind of noise, rate, and what they are."""
    found = []
    for (kind, rate, name), matrix in shown.items():
        across, down = ("given label", "clean label") if name == "T" else ("class", "given label")
        classes = list(range(len(matrix)))
        title = f"{kind} {rate:g}: {name}"
        found.append(
            Map(title, across, down, classes, classes, matrix.tolist(), 0.0, 1.0, "share", downwards=True)
        )
    return found


def five_panels(rows: Sequence[Row]) -> list[Panel]:
    """A row of panels for each noise, a place for each method."""
    found = []
    for kind, rate in dict.fromkeys((row["noise"], row["rate"]) for row in rows):
        mine = matching(rows, noise=kind, rate=rate)
        for key, title in MEASURES.items():
            theory = _theory(mine) if key == "loss" else []
            limits = None if key == "accuracy" else (0.0, None)
            name = f"{kind} {rate:g}: {title.split(',')[0]}"
            panel = Panel(
                name, "", title, (*_methods(mine, key), *theory), _TICKS, limits, (-0.6, len(METHODS) - 0.4)
            )
            found.append(panel)
    return found


def _methods(rows: Sequence[Row], key: str) -> list[Curve]:
    scale = 1 if key == "loss" else 100
    return [
        Curve.of(
            row["method"],
            _COLOURS[row["method"]],
            [METHODS.index(row["method"])],
            [row[key]],
            scale=scale,
            line="none",
        )
        for row in rows
    ]


def _theory(rows: Sequence[Row]) -> list[Curve]:
    """A short line at each method for which the loss is finite, with gaps between them."""
    looks: tuple[tuple[str, Line, str], ...] = (
        ("heart", "solid", "predicted, memorised"),
        ("averaging", "dotted", "predicted, averaged"),
    )
    curves = []
    for key, line, name in looks:
        x: list[float] = []
        y: list[float | None] = []
        for row in rows:
            if math.isfinite(row[key]):
                place = METHODS.index(row["method"])
                x += [place - _WIDE, place + _WIDE, place + _WIDE]
                y += [row[key], row[key], None]
        if x:
            curves.append(Curve(name, GREY, x, y, line=line))
    return curves
