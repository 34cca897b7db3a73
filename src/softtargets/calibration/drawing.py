"""Reliability diagrams. Computing is elsewhere; here there is only ink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.calibration.binning import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_reliability(
    axes: Axes, curves: Mapping[str, Reliability], colours: Mapping[str, str], fewest: int = 1
) -> None:
    """Accuracy over confidence, one line per named curve; the area of a point is its bin's share.

    Bins with fewer than `fewest` examples are not drawn.
    """
    axes.plot([0, 1], [0, 1], linestyle="--", color="0.6", linewidth=1, zorder=1)
    for name, curve in curves.items():
        full = curve.counts >= fewest
        share = (curve.counts[full] / curve.counts.sum()).numpy()
        x, y = curve.confidence[full].numpy(), curve.accuracy[full].numpy()
        axes.plot(x, y, color=colours[name], linewidth=1.5, label=name, zorder=2)
        axes.scatter(x, y, s=8 + 220 * share, color=colours[name], alpha=0.75, linewidth=0, zorder=3)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.set_aspect("equal")
