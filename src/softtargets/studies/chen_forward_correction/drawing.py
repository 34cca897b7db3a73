"""The figures of the study as charts, made of what `figures` gathers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softtargets.report import Map, Panel
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED
from softtargets.studies.chen_forward_correction.grid import METHODS, Matrix
from softtargets.studies.results import Row, matching
from softtargets.studies.ways import Level, Shown, Way, panels_of_ways

# Both predictions of a loss, by their keys.
PREDICTED: tuple[Level, ...] = (
    ("heart", "solid", "predicted, memorised"),
    ("averaging", "dotted", "predicted, averaged"),
)
MEASURES = {
    "loss": Shown("test loss, nats", theory=PREDICTED),
    "accuracy": Shown("test accuracy, %", 100, anywhere=True),
    "ece": Shown("ECE, %", 100),
}
_NAMES = ("none", "uniform", "S = T", "Bayes", "forward")
_WAYS = dict(zip(METHODS, map(Way, _NAMES, (GREY, ORANGE, RED, BLUE, GREEN)), strict=True))


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


def matrix_rows(shown: Mapping[tuple[str, float, str], Matrix]) -> list[Row]:
    """The entries of these matrices that are not 0."""
    return [
        {"noise": kind, "rate": rate, "matrix": name, "row": i, "column": j, "value": float(value)}
        for (kind, rate, name), matrix in shown.items()
        for i, line in enumerate(matrix)
        for j, value in enumerate(line)
        if value > 0
    ]


def five_panels(rows: Sequence[Row]) -> list[Panel]:
    """A row of panels for each noise, a place for each method."""
    return [
        panel
        for kind, rate in dict.fromkeys((row["noise"], row["rate"]) for row in rows)
        for panel in panels_of_ways(
            f"{kind} {rate:g}", matching(rows, noise=kind, rate=rate), _WAYS, MEASURES
        )
    ]
