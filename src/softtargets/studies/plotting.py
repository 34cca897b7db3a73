"""What the studies' figures have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from softtargets.claims import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


def panels(
    count: int, width: float, height: float, ratios: Sequence[float] | None = None
) -> tuple[Drawing, list[Axes]]:
    """A row of axes, laid out so that nothing overlaps."""
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height), layout="constrained")
    row = drawing.subplots(1, count, width_ratios=ratios, squeeze=False)
    return drawing, list(row[0])


def errorbars(
    axes: Axes,
    x: Iterable[float],
    samples: Sequence[Sample],
    colour: str,
    label: str,
    scale: float = 1,
    line: str = "-",
    marker: str = "o",
) -> None:
    """Mean and deviation with every seed as a faint dot, so that the bar hides nothing."""
    places = list(x)
    for place, sample in zip(places, samples, strict=True):
        dots = [scale * value for value in sample.values]
        axes.scatter([place] * sample.n, dots, s=9, color=colour, alpha=0.3, linewidth=0, zorder=2)
    means = [scale * sample.mean for sample in samples]
    spreads = [0.0 if math.isnan(sample.spread) else scale * sample.spread for sample in samples]
    style: dict[str, Any] = {"markersize": 5, "linewidth": 1.6, "capsize": 3, "zorder": 3}
    axes.errorbar(
        places,
        means,
        spreads,
        color=colour,
        label=label,
        ecolor=colour,
        elinewidth=1,
        linestyle=line,
        marker=marker,
        **style,
    )
