"""What the studies' figures have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from softtargets.claims import Sample
from softtargets.report.drawing import Axes, Drawing, canvas
from softtargets.studies.results import Row

Beside = Literal["outside lower center", "outside right center"]


def panels(
    count: int, width: float, height: float, ratios: Sequence[float] | None = None
) -> tuple[Drawing, list[Axes]]:
    """A row of axes, laid out so that nothing overlaps."""
    drawing, (row,) = panel_rows(1, count, width, height, ratios)
    return drawing, row


def panel_rows(
    rows: int, count: int, width: float, height: float, ratios: Sequence[float] | None = None
) -> tuple[Drawing, list[list[Axes]]]:
    """Several rows of axes."""
    drawing = canvas(width, height)
    return drawing, drawing.subplots(rows, count, width_ratios=ratios, squeeze=False).tolist()


def legend(drawing: Drawing, *axes: Axes, ncols: int = 1, loc: Beside = "outside lower center") -> None:
    """One legend for all panels, beside them: below, or ``outside right center``."""
    found = [one.get_legend_handles_labels() for one in axes]
    handles = [handle for both in found for handle in both[0]]
    drawing.legend(handles, [label for both in found for label in both[1]], loc=loc, ncols=ncols)


def curve(axes: Axes, rows: Iterable[Row], x: str, y: str, colour: str, label: str, **look: Any) -> None:
    """A line through rows, from one of their columns over another; `look` as for `errorbars`."""
    rows = list(rows)
    errorbars(axes, [row[x] for row in rows], [row[y] for row in rows], colour, label, **look)


def errorbars(
    axes: Axes,
    x: Iterable[float],
    samples: Sequence[Sample],
    colour: str,
    label: str,
    scale: float = 1,
    line: str = "-",
    marker: str = "o",
    bars: str = "",
) -> None:
    """Mean and deviation with every seed as a faint dot, so that the bar hides nothing."""
    places = list(x)
    for place, sample in zip(places, samples, strict=True):
        dots = [scale * value for value in sample.values]
        axes.scatter([place] * sample.n, dots, s=9, color=colour, alpha=0.3, linewidth=0, zorder=2)
    means = [scale * sample.mean for sample in samples]
    spreads = [0.0 if math.isnan(sample.spread) else scale * sample.spread for sample in samples]
    style: dict[str, Any] = {"markersize": 5, "linewidth": 1.6, "capsize": 3, "zorder": 3}
    style |= {"color": colour, "ecolor": bars or colour, "elinewidth": 1, "linestyle": line, "marker": marker}
    axes.errorbar(places, means, spreads, label=label, **style)
