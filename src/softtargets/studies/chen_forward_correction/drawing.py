"""The pictures of the study, drawn from what `figures` gathers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED, Axes, Drawing
from softtargets.studies.chen_forward_correction.grid import METHODS, Matrix
from softtargets.studies.drawing import errorbars, legend, panel_rows, panels
from softtargets.studies.results import Row, matching

MEASURES = {"loss": "test loss, nats", "accuracy": "test accuracy, %", "ece": "ECE, %"}
_COLOURS = dict(zip(METHODS, (GREY, ORANGE, RED, BLUE, GREEN), strict=True))
_TICKS = ("none", "uni-\nform", "S = T", "S by\nBayes", "for-\nward")
_WIDE = 0.32


def draw_matrices(shown: Mapping[tuple[str, float, str], Matrix]) -> Drawing:
    """Maps side by side, by kind of noise, rate, and what they are."""
    drawing, axes = panels(len(shown), width=2.6 * len(shown), height=2.9)
    for panel, ((kind, rate, name), matrix) in zip(axes, shown.items(), strict=True):
        panel.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
        panel.set_title(f"{kind} {rate:g}: {name}", fontsize=9)
        across, down = ("given label", "clean label") if name == "T" else ("class", "given label")
        panel.set(xlabel=across, ylabel=down, xticks=range(0, 10, 3), yticks=range(0, 10, 3))
        panel.grid(visible=False)
    return drawing


def draw_five_ways(rows: Sequence[Row]) -> Drawing:
    """A row of panels for each noise, a place for each method."""
    lines = list(dict.fromkeys((row["noise"], row["rate"]) for row in rows))
    drawing, grid = panel_rows(len(lines), len(MEASURES), width=10.4, height=2.7 * len(lines) + 0.4)
    for line, (kind, rate) in zip(grid, lines, strict=True):
        mine = matching(rows, noise=kind, rate=rate)
        for axes, (key, title) in zip(line, MEASURES.items(), strict=True):
            _methods(axes, mine, key)
            axes.set(ylabel=title, title=f"{kind} {rate:g}")
        _theory(line[0], mine)
        line[0].set_ylim(bottom=0)  # at the end: from here on the upper end stays where it is
    legend(drawing, grid[0][0], ncols=2)
    return drawing


def _methods(axes: Axes, rows: Sequence[Row], key: str) -> None:
    scale = 1 if key == "loss" else 100
    for row in rows:
        place = METHODS.index(row["method"])
        errorbars(axes, [place], [row[key]], _COLOURS[row["method"]], "_", scale=scale)
    axes.set_xticks(range(len(METHODS)), _TICKS)
    axes.set_xlim(-0.6, len(METHODS) - 0.4)
    if key == "ece":
        axes.set_ylim(bottom=0)


def _theory(axes: Axes, rows: Sequence[Row]) -> None:
    looks = (("heart", "-", "predicted, memorised"), ("averaging", ":", "predicted, averaging"))
    for key, style, name in looks:
        there = [row for row in rows if math.isfinite(row[key])]
        for number, row in enumerate(there):
            place = METHODS.index(row["method"])
            ends = [place - _WIDE, place + _WIDE]
            label = name if number == 0 else f"_{name}"  # of names with a line before them no legend speaks
            axes.plot(ends, [row[key]] * 2, color="black", linestyle=style, linewidth=1.3, label=label)
