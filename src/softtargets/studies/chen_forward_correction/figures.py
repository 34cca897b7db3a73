"""The figures of the study, with the numbers they show."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from softtargets.claims import Sample
from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED
from softtargets.studies.chen_forward_correction.grid import BAYES, FORWARD, METHODS, transitions
from softtargets.studies.chen_forward_correction.predicting import predicted, targets
from softtargets.studies.plotting import errorbars
from softtargets.studies.study import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

_COLOURS = dict(zip(METHODS, (GREY, ORANGE, RED, BLUE, GREEN), strict=True))
_TICKS = dict(zip(METHODS, ("none", "uni-\nform", "S = T", "S by\nBayes", "for-\nward"), strict=True))
_MEASURES = {"loss": "test loss, nats", "accuracy": "test accuracy, %", "ece": "ECE, %"}
_WIDE = 0.32


def noises(results: Results) -> list[tuple[str, float]]:
    """Kinds and rates in the order of the grid."""
    return list(dict.fromkeys((o.trial.labels["noise"], o.trial.labels["rate"]) for o in results.outcomes))


def matrices(results: Results) -> Figure:
    """T, and the targets by Bayes' rule, for the highest rate of each kind."""
    highest = {
        kind: max(rate for other, rate in noises(results) if other == kind) for kind, _ in noises(results)
    }
    shown = {
        (kind, name): matrix
        for kind, rate in highest.items()
        for name, matrix in (
            ("T", transitions(kind, rate)),
            ("S by Bayes' rule", targets(BAYES, transitions(kind, rate))),
        )
    }
    rows = tuple(
        {"noise": kind, "rate": highest[kind], "matrix": name, "row": i, "column": j, "value": float(value)}
        for (kind, name), matrix in shown.items()
        for i, line in enumerate(matrix)
        for j, value in enumerate(line)
        if value > 0
    )

    def draw() -> Drawing:
        from matplotlib.figure import Figure as Drawing

        drawing = Drawing(figsize=(2.6 * len(shown), 2.9), layout="constrained")
        for axes, ((kind, name), matrix) in zip(drawing.subplots(1, len(shown)), shown.items(), strict=True):
            axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
            axes.set(
                title=f"{kind} {highest[kind]:g}: {name}", xticks=range(0, 10, 3), yticks=range(0, 10, 3)
            )
            axes.set_title(axes.get_title(loc="left"), loc="left", fontsize=9)
            theirs = ("given label", "clean label") if name == "T" else ("class", "given label")
            axes.set(xlabel=theirs[0], ylabel=theirs[1])
            axes.grid(visible=False)
        return drawing

    columns = (
        Column("noise", "noise"),
        Column("rate", "rate", 2),
        Column("matrix", "matrix"),
        Column("row", "row"),
        Column("column", "column"),
        Column("value", "value"),
    )
    return Figure(
        "matrices",
        "What becomes of labels, and what to believe about a given one.",
        draw,
        Table("matrices", "Noise and targets", columns, rows),
        "T: by rows, what becomes of a clean label. S: by rows, the target for a given label, the probability of "
        "each clean class behind it. Dark is 1. Entries that are 0 are not in the table.",
        "Maps of the noise matrix and the target matrix for each kind of noise; one is the other turned over.",
    )


def five_ways(results: Results) -> Figure:
    """Loss, accuracy and calibration of every method, a row of panels for each noise."""
    rows: list[dict[str, Any]] = []
    for kind, rate in noises(results):
        for method in METHODS:
            chosen = {"noise": kind, "rate": rate, "method": method}
            if not results.where(**chosen).outcomes:
                continue
            theory = predicted(method, transitions(kind, rate))
            row = chosen | {"heart": theory.by_heart, "averaging": theory.averaging}
            for key in (*_MEASURES, "early_accuracy", "by_heart"):
                row[key] = results.sample(key, **chosen)
            if method == FORWARD:
                row["through"] = results.sample("through", **chosen)
            rows.append(row)

    def draw() -> Drawing:
        from matplotlib.figure import Figure as Drawing

        lines = noises(results)
        drawing = Drawing(figsize=(10.4, 2.7 * len(lines) + 0.4), layout="constrained")
        grid = drawing.subplots(len(lines), len(_MEASURES), squeeze=False)
        for line, (kind, rate) in zip(grid, lines, strict=True):
            mine = [row for row in rows if (row["noise"], row["rate"]) == (kind, rate)]
            for axes, (key, title) in zip(line, _MEASURES.items(), strict=True):
                _methods(axes, mine, key)
                axes.set(ylabel=title, title=f"{kind} {rate:g}")
            _theory(line[0], mine)
            line[0].set_ylim(bottom=0)  # at the end: from here on the upper end stays where it is
        drawing.legend(*grid[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return drawing

    columns = (
        Column("noise", "noise"),
        Column("rate", "rate", 2),
        Column("method", "method"),
        Column("loss", "test loss"),
        Column("heart", "predicted, by heart"),
        Column("averaging", "predicted, averaging"),
        Column("through", "test loss through T"),
        Column("accuracy", "accuracy", percent=True),
        Column("early_accuracy", "accuracy, best epoch", percent=True),
        Column("ece", "ECE", percent=True),
        Column("by_heart", "labels by heart", percent=True),
    )
    return Figure(
        "five_ways",
        "Test loss, accuracy and calibration, five ways to meet noise that is not symmetric.",
        draw,
        Table("five_ways", "Five ways to meet it, in numbers.", columns, tuple(rows)),
        "All against clean test labels; mean, deviation and every seed. Lines in the left panels are predicted: for "
        "a net that has learned its labels by heart (no line, and “–” in the table: infinitely much) "
        "and for one that has learned averages. Chen et al. predict the former.",
        "Test loss with predictions, accuracy and calibration error for five methods, a row for each noise.",
    )


def _methods(axes: Axes, rows: list[dict[str, Any]], key: str) -> None:
    scale = 1 if key == "loss" else 100
    for row in rows:
        sample: Sample = row[key]
        errorbars(axes, [METHODS.index(row["method"])], [sample], _COLOURS[row["method"]], "_", scale=scale)
    axes.set_xticks(range(len(METHODS)), [_TICKS[method] for method in METHODS])
    axes.set_xlim(-0.6, len(METHODS) - 0.4)
    if key == "ece":
        axes.set_ylim(bottom=0)


def _theory(axes: Axes, rows: list[dict[str, Any]]) -> None:
    looks = (("heart", "-", "predicted, by heart"), ("averaging", ":", "predicted, averaging"))
    for key, style, name in looks:
        there = [row for row in rows if math.isfinite(row[key])]
        for number, row in enumerate(there):
            place = METHODS.index(row["method"])
            ends = [place - _WIDE, place + _WIDE]
            label = name if number == 0 else f"_{name}"  # of names with a line before them no legend speaks
            axes.plot(ends, [row[key]] * 2, color="black", linestyle=style, linewidth=1.3, label=label)
