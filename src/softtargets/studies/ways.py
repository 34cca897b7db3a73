"""Figures of several ways to train side by side: a panel for each measure, a place on its axis for each way."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from softtargets.report import Curve, Line, Panel
from softtargets.report.drawing import GREY
from softtargets.studies.results import Row

# A predicted level: its key in the rows, its line and its name.
Level = tuple[str, Line, str]

# Half the width of a predicted level around its way.
_WIDE = 0.32


@dataclass(frozen=True)
class Way:
    """What a way to train is called where there is little room, and its colour."""

    short: str
    colour: str

    def called(self, method: str) -> str:
        """Its whole name, as tables have it, with the short one of the axis where that is another word.

        >>> Way("p", "").called("uniform"), Way("S*", "").called("S* = T Tᵗ")
        ('uniform (p)', 'S* = T Tᵗ')
        """
        return method if self.short in method else f"{method} ({self.short})"


@dataclass(frozen=True)
class Shown:
    """A measure of a panel: its axis, how its numbers are scaled, and predicted levels as (key, line, name).

    The axis begins at 0 unless `anywhere`.
    """

    axis: str
    scale: float = 1
    theory: tuple[Level, ...] = ()
    anywhere: bool = False


def panels_of_ways(
    title: str, rows: Sequence[Row], ways: Mapping[str, Way], measures: Mapping[str, Shown]
) -> list[Panel]:
    """A panel for each measure; rows have their way under ``method``."""
    places = {method: place for place, method in enumerate(ways)}
    ticks = tuple((place, ways[method].short) for method, place in places.items())
    found = []
    for key, shown in measures.items():
        points = [
            Curve.of(
                ways[row["method"]].called(row["method"]),
                ways[row["method"]].colour,
                [places[row["method"]]],
                [row[key]],
                scale=shown.scale,
                line="none",
            )
            for row in rows
        ]
        levels = [
            level
            for known, line, name in shown.theory
            for level in _levels([(places[row["method"]], row[known]) for row in rows], line, name)
        ]
        name = f"{title}: {shown.axis.split(',')[0]}"
        limits = None if shown.anywhere else (0.0, None)
        panel = Panel(name, "", shown.axis, (*points, *levels), ticks, limits, (-0.6, len(ways) - 0.4))
        found.append(panel)
    return found


def _levels(known: Sequence[tuple[int, float]], line: Line, name: str) -> list[Curve]:
    """A short line at each place whose value is finite, with gaps between them."""
    x: list[float] = []
    y: list[float | None] = []
    for place, value in known:
        if math.isfinite(value):
            x += [place - _WIDE, place + _WIDE, place + _WIDE]
            y += [value, value, None]
    return [Curve(name, GREY, x, y, line=line)] if x else []
