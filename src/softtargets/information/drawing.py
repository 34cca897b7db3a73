"""Curves of information during training. Drawing only: computing is elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softtargets.information.evolution import Evolution, EvolutionBand

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE: dict[str, Any] = {"linewidth": 1.5, "marker": "o", "markersize": 4, "zorder": 3}


def draw_evolution(
    axes: Axes,
    curves: Mapping[str, Evolution | EvolutionBand],
    colours: Mapping[str, str],
    xlabel: str = "training step",
    ylabel: str = "mutual information, nats",
) -> None:
    """For each named curve a line and a band: one standard error, or from the lowest to the highest training.

    Dashed lines are limits: log 2 where examples have collapsed to two clusters, and log N where each of N examples is
    distinguishable from all others.
    """
    for bound in sorted({math.log(2), *(curve.bound for curve in curves.values())}):
        axes.axhline(bound, linestyle="--", color="0.6", linewidth=1, zorder=1)
        axes.annotate(
            f"log {math.exp(bound):.0f}", (1, bound), (-2, 2), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="bottom", fontsize=8, color="0.4",
        )  # fmt: skip
    for name, curve in curves.items():
        if isinstance(curve, Evolution):
            middle = curve.nats
            pairs = list(zip(curve.nats, curve.standard_error, strict=True))
            low, high = [nats - error for nats, error in pairs], [nats + error for nats, error in pairs]
        else:
            middle, low, high = curve.mean, list(curve.lowest), list(curve.highest)
        axes.fill_between(curve.steps, low, high, color=colours[name], alpha=0.18, linewidth=0, zorder=2)
        axes.plot(curve.steps, middle, color=colours[name], label=name, **_LINE)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))  # heights are amounts, to be compared with both bounds
