"""Risk over coverage. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.selection.curve import Numbers
from softtargets.selection.points import RiskPoints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST = "#6b7280"


def draw_risk_coverage(
    axes: Axes, curves: Mapping[str, RiskPoints], colours: Mapping[str, str], best: Numbers | None = None
) -> None:
    """Error rate over the share of predictions used, one line and the band of its interval per named curve.

    `best` are error rates that no order could be better than, a dashed line.
    """
    for name, one in curves.items():
        axes.fill_between(one.coverages, one.low, one.high, color=colours[name], alpha=0.15, linewidth=0)
        axes.plot(one.coverages, one.risk, color=colours[name], label=name)
    if best is not None:
        coverages = next(iter(curves.values())).coverages
        axes.plot(coverages, best, color=BEST, linestyle="--", linewidth=1, label="best possible order")
    axes.set(
        xlabel="share of predictions used, most confident first", ylabel="error rate of those", xlim=(0, 1)
    )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.3g}")
