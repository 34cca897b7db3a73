"""Curves of distillation. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.distillation.curve import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_curves(
    axes: Axes,
    curves: Mapping[str, Curve],
    colours: Mapping[str, str],
    xlabel: str = "smoothness index gamma",
    ylabel: str = "accuracy",
) -> None:
    """For each named curve a line through the means and a band from the lowest to the highest seed."""
    for name, curve in curves.items():
        axes.fill_between(
            curve.x, curve.lowest, curve.highest, color=colours[name], alpha=0.18, linewidth=0, zorder=1
        )
        axes.plot(curve.x, curve.mean, color=colours[name], linewidth=1.5, marker="o", label=name, zorder=2)
    axes.set(xlabel=xlabel, ylabel=ylabel)
