"""Figures that studies need, each from one description: a widget to ask, and a picture of the same for files and print.

`lines` has curves and points with bars in panels, `maps` a colour for each cell of a plane. What both show is plain
data (`Panel`, `Map`); nothing is drawn before a page is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from softtargets.claims import Sample
from softtargets.report.drawing import Axes, Drawing, canvas, plain
from softtargets.report.page import Figure, Table, Widget

# Kinds of widgets whose numbers are those of their figures' tables, and stand in ``results.json`` only there.
CHARTS = ("lines", "maps")

Line = Literal["solid", "dashed", "dotted", "none"]
Marker = Literal["circle", "square", "triangle", "none"]

# What matplotlib calls them.
_LINES = {"solid": "-", "dashed": "--", "dotted": ":", "none": "none"}
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "none": "none"}
_PALETTES = {"sequential": "viridis", "diverging": "RdBu_r", "share": "Blues"}
# Inches of one panel of a picture, and how many stand side by side.
_WIDE, _HIGH, _ACROSS = 4.6, 3.5, 3


@dataclass(frozen=True)
class Curve:
    """Values over x, with an interval and every seed where they are known; None is a gap.

    Points have bars for `low` and `high`, a line without points has a band. Curves of a `group` have one entry in the
    legend: the group, in the look of its first curve.
    """

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float | None]
    low: Sequence[float | None] | None = None
    high: Sequence[float | None] | None = None
    dots: Sequence[Sequence[float]] | None = None
    line: Line = "solid"
    marker: Marker = "none"
    group: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        colour: str,
        x: Iterable[float],
        samples: Iterable[Sample],
        *,
        scale: float = 1,
        line: Line = "solid",
        marker: Marker = "circle",
        group: str = "",
    ) -> Curve:
        """Mean and deviation over seeds, and every seed as a dot, so that the bar hides nothing.

        >>> Curve.of("error", "#0072b2", [1.0], [Sample.of([0.25, 0.75])], scale=100).high[0].__round__(2)
        85.36
        """
        found = list(samples)
        means = [scale * sample.mean for sample in found]
        spreads = [0.0 if math.isnan(sample.spread) else scale * sample.spread for sample in found]
        low, high = (
            [_number(mean + sign * one) for mean, one in zip(means, spreads, strict=True)] for sign in (-1, 1)
        )
        dots = [[scale * value for value in sample.values if math.isfinite(value)] for sample in found]
        return cls(name, colour, list(x), list(map(_number, means)), low, high, dots, line, marker, group)

    @classmethod
    def level(
        cls, name: str, colour: str, value: float, ends: tuple[float, float], line: Line = "dashed"
    ) -> Curve:
        """A horizontal line from one end of the axis to the other."""
        return cls(name, colour, list(ends), [_number(value)] * 2, line=line)


@dataclass(frozen=True)
class Panel:
    """Curves on a pair of axes.

    ticks:  for x that are names or no even steps, where they stand and what they are called.
    limits: of the y axis, and of the x axis, where the curves should not decide.
    digits: behind the point, of the numbers a reader asks for.
    """

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    ticks: Sequence[tuple[float, str]] | None = None
    limits: tuple[float | None, float | None] | None = None
    xlimits: tuple[float, float] | None = None
    digits: int = 3


@dataclass(frozen=True)
class Map:
    """A value for each cell of a plane, by rows of y; None where there is none.

    low, high: where the colours end; `beyond` says whether there are values further out.
    line:      a curve over the plane, (x, y).
    """

    title: str
    x: str
    y: str
    xs: Sequence[float]
    ys: Sequence[float]
    values: Sequence[Sequence[float | None]]
    low: float
    high: float
    palette: Literal["sequential", "diverging", "share"] = "sequential"
    digits: int = 2
    unit: str = ""
    line: Sequence[tuple[float, float]] = ()
    downwards: bool = False
    numbers: bool = field(default=True)


def lines(
    name: str,
    title: str,
    panels: Sequence[Panel],
    rows: Iterable[Mapping[str, Any]] | Table,
    caption: str = "",
    alt: str = "",
) -> Figure:
    """A figure of curves; panels stand side by side, and below each other on a phone."""
    widget = Widget("lines", {"panels": [asdict(panel) for panel in panels]})
    return _figure(name, title, lambda: draw_lines(panels), rows, caption, alt, widget)


def maps(
    name: str,
    title: str,
    panels: Sequence[Map],
    rows: Iterable[Mapping[str, Any]],
    caption: str = "",
    alt: str = "",
) -> Figure:
    """A figure of coloured planes."""
    widget = Widget("maps", {"panels": [asdict(panel) for panel in panels]})
    return _figure(name, title, lambda: draw_maps(panels), rows, caption, alt, widget)


def _figure(
    name: str,
    title: str,
    draw: Any,
    rows: Iterable[Mapping[str, Any]] | Table,
    caption: str,
    alt: str,
    widget: Widget,
) -> Figure:
    if isinstance(rows, Table):
        return Figure(name, title, draw, rows, caption, alt, widget)
    return Figure.of(name, title, draw, rows, caption, alt, widget=widget)


def draw_lines(panels: Sequence[Panel]) -> Drawing:
    """The picture of curves, with one legend below."""
    drawing, axes = _grid(len(panels))
    for panel, ax in zip(panels, axes, strict=False):
        for curve in panel.curves:
            _curve(ax, curve)
        ax.set(title=plain(panel.title), xlabel=plain(panel.x), ylabel=plain(panel.y))
        if panel.ticks is not None:
            ax.set_xticks([at for at, _ in panel.ticks], [plain(name) for _, name in panel.ticks])
        if panel.limits is not None:
            ax.set_ylim(*panel.limits)
        if panel.xlimits is not None:
            ax.set_xlim(*panel.xlimits)
    looks: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            looks.setdefault(label, handle)
    if looks:
        across = max(1, min(len(looks), int(_width(len(panels)) / 3)))
        drawing.legend(list(looks.values()), list(looks), loc="outside lower center", ncols=across)
    return drawing


def _curve(ax: Axes, curve: Curve) -> None:
    for at, dots in zip(curve.x, curve.dots or (), strict=False):
        ax.scatter([at] * len(dots), list(dots), s=9, color=curve.colour, alpha=0.3, linewidth=0, zorder=2)
    x, y, low, high = list(curve.x), _drawn(curve.y), _drawn(curve.low), _drawn(curve.high)
    style: dict[str, Any] = {
        "color": curve.colour,
        "label": plain(curve.group or curve.name),
        "linewidth": 1.6,
        "linestyle": _LINES[curve.line],
        "marker": _MARKERS[curve.marker],
        "markersize": 5,
        "zorder": 3,
    }
    if low and high and curve.marker != "none":
        down, up = ([abs(end - at) for at, end in zip(y, side, strict=True)] for side in (low, high))
        ax.errorbar(x, y, [down, up], capsize=3, elinewidth=1, **style)
        return
    if low and high:
        ax.fill_between(x, low, high, color=curve.colour, alpha=0.18, linewidth=0)
    ax.plot(x, y, **style)


def _drawn(values: Sequence[float | None] | None) -> list[float]:
    return [math.nan if value is None else value for value in values or ()]


def draw_maps(panels: Sequence[Map]) -> Drawing:
    """The picture of coloured planes, each with its scale."""
    import numpy as np

    drawing, axes = _grid(len(panels))
    for panel, ax in zip(panels, axes, strict=False):
        values = np.array(
            [[math.nan if value is None else value for value in row] for row in panel.values], float
        )
        look: dict[str, Any] = {"aspect": "auto", "cmap": _PALETTES[panel.palette]}
        look["origin"] = "upper" if panel.downwards else "lower"
        image = ax.imshow(values, vmin=panel.low, vmax=panel.high, **look)
        for axis, places in ((ax.xaxis, panel.xs), (ax.yaxis, panel.ys)):
            every = math.ceil(len(places) / 12)
            axis.set_ticks(range(0, len(places), every), [f"{place:g}" for place in places[::every]])
        ax.tick_params(axis="x", rotation=60 if len(panel.xs) > 6 else 0)
        if panel.line:
            ax.plot(*zip(*(_cell(panel, at) for at in panel.line), strict=True), color="white", linewidth=1.8)
        ax.set(title=plain(panel.title), xlabel=plain(panel.x), ylabel=plain(panel.y))
        ax.grid(visible=False)
        beyond = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
            (bool(np.nanmin(values) < panel.low), bool(np.nanmax(values) > panel.high)), "neither"
        )
        drawing.colorbar(image, ax=ax, shrink=0.85, extend=beyond, label=panel.unit)
    return drawing


def _cell(panel: Map, at: tuple[float, float]) -> tuple[float, float]:
    """Where a point of the plane lies between the middles of cells."""
    import numpy as np

    return (
        float(np.interp(at[0], panel.xs, range(len(panel.xs)))),
        float(np.interp(at[1], panel.ys, range(len(panel.ys)))),
    )


def _grid(count: int) -> tuple[Drawing, list[Axes]]:
    across = min(count, _ACROSS)
    down = math.ceil(count / across)
    drawing = canvas(_width(count), _HIGH * down + 0.5)
    axes = [ax for row in drawing.subplots(down, across, squeeze=False).tolist() for ax in row]
    for ax in axes[count:]:
        ax.set_axis_off()
    return drawing, axes


def _width(count: int) -> float:
    return 7.4 if count == 1 else min(count, _ACROSS) * (_WIDE if count == 2 else 3.7)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
