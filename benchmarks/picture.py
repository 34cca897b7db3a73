"""What the pictures of all benches are made of: panels, bars, labels, round ticks, a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from softtargets.report.drawing import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK = "#111827"
PALE = "#4b5563"

Panel = Callable[["Axes"], None]


def panels(
    makers: Sequence[Panel], columns: int, width: float, heights: Sequence[float], head: float
) -> Figure:
    """One picture of many panels, row after row; a row of its height in inches, below a head of so many."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width * columns, sum(heights) + head), layout="constrained")
    grid = drawing.add_gridspec(len(heights), columns, height_ratios=list(heights))
    for place, make in enumerate(makers):
        make(drawing.add_subplot(grid[divmod(place, columns)]))
    return drawing


class HBar(NamedTuple):
    """A bar to the right at some height, and what stands beside it: without a value, an apology."""

    y: float
    value: float | None
    label: str
    colour: str
    bold: bool = False
    quartiles: tuple[float, float] | None = None
    alpha: float | None = None


def draw_bars(
    axes: Axes, bars: Iterable[HBar], left: float = 0.0, height: float = 0.86, **style: Any
) -> None:
    """Bars from `left` on, their quartiles across their ends where these are known, and their labels."""
    for bar in bars:
        if bar.value is None:
            apologise(axes, bar.label, (left, bar.y))
            continue
        length = bar.value - left
        axes.barh(bar.y, length, left=left, height=height, color=bar.colour, alpha=bar.alpha, linewidth=0)
        if bar.quartiles is not None:
            axes.plot(bar.quartiles, [bar.y] * 2, color=INK, linewidth=0.9)
        end = max(bar.value, bar.quartiles[1] if bar.quartiles else bar.value)
        write(axes, bar.label, (end, bar.y), fontweight="bold" if bar.bold else "normal", **style)


def rows_of_bars(axes: Axes, labels: Mapping[float, str], bottom: float, top: float) -> None:
    """What stands left of bars at which height, from the top down."""
    axes.set_yticks(list(labels), [plain(label) for label in labels.values()])
    axes.set_ylim(bottom, top)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def logarithmic(axes: Axes, low: float, high: float) -> None:
    """A logarithmic axis along the bars, with room for their labels."""
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.2)
    round_ticks(axes.xaxis, low, axes.get_xlim()[1])


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


def multiple(text: str) -> str:
    """``2.13x`` with the sign for times."""
    return text.replace("x", "×")
