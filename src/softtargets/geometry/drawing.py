"""Pictures of the template plane. Computing is elsewhere; here there is only ink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_plane(
    axes: Axes, points: Tensor, labels: Tensor, names: Mapping[int, str], colours: Mapping[int, str]
) -> None:
    """Scatter projected activations (N, 2), one colour per class."""
    for label, name in names.items():
        chosen = points[labels == label].numpy()
        axes.scatter(
            chosen[:, 0],
            chosen[:, 1],
            s=13,
            alpha=0.65,
            linewidth=0,
            color=colours[label],
            label=name,
            zorder=2,
        )
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7.5)


def common_limits(
    panels: list[Tensor], margin: float = 0.06
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Axis limits that show all points of several panels on one scale."""
    lows = [min(float(points[:, axis].min()) for points in panels) for axis in (0, 1)]
    highs = [max(float(points[:, axis].max()) for points in panels) for axis in (0, 1)]
    reach = (1 + 2 * margin) * max(high - low for low, high in zip(lows, highs, strict=True)) / 2
    middles = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    return (middles[0] - reach, middles[0] + reach), (middles[1] - reach, middles[1] + reach)
