"""What the pictures of all benches have in common: ink, legend, labels, round ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from softtargets.report.drawing import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#111827"
PALE = "#4b5563"


def legend(drawing: Figure, title: str, handles: Sequence[Any]) -> None:
    """The title of the whole picture, and below it who is who."""
    made = drawing.legend(
        handles=list(handles),
        title=plain(title),
        title_fontproperties={"size": 12, "weight": "bold"},
        alignment="left",
        loc="outside upper left",
        ncols=len(handles),
        handlelength=1.6,
        columnspacing=1.4,
    )
    made.get_title().set_color(INK)


def write(
    axes: Axes, text: str, at: tuple[float, float], away: tuple[float, float] = (4, 0), **style: Any
) -> None:
    """Small text beside a point, `away` in printer's points, legible on whatever is drawn there."""
    chosen: dict[str, Any] = {"va": "center", "fontsize": 7.5, "color": INK} | style
    axes.annotate(
        plain(text),
        at,
        away,
        textcoords="offset points",
        zorder=5,
        # A box, not outlined letters: those are many times as large in an SVG.
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
        **chosen,
    )


def apologise(
    axes: Axes, text: str, at: tuple[float, float], away: tuple[float, float] = (4, 0), **style: Any
) -> None:
    """In the place of a measurement: why there is none."""
    write(axes, text if len(text) <= 56 else text[:55] + "…", at, away, style="italic", color=PALE, **style)


def round_ticks(axis: Axis, low: float, high: float) -> None:
    """1, 2, 5, 10, 20, ... written out along a logarithmic axis: people do not read 10^1.3."""
    from matplotlib.ticker import NullLocator

    ticks = round_numbers(low, high)
    axis.set_ticks(ticks, [f"{tick:,g}" if tick < 1e4 else f"{tick:,.0f}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers in a range that a logarithmic axis shows.

    >>> round_numbers(0.8, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if math.log10(high / low) < 3.2 else (1,)
    return [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
