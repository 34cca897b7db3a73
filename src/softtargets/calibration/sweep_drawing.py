"""Calibration against temperature. Computing is elsewhere; here there is only ink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.calibration.sweep import TemperatureSweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"ece": "expected calibration error", "nll": "negative log-likelihood (nats)"}


def draw_sweep(
    axes: Axes, sweeps: Mapping[str, TemperatureSweep], colours: Mapping[str, str], measure: str = "ece"
) -> None:
    """One measure ("ece", "nll" or a metric's name) over temperature, one line per named sweep.

    A point marks the least value of each line, and a dashed line T = 1, where nothing is scaled. Temperatures are drawn
    by their ratios, so that twice as hot is as far from 1 as half.
    """
    axes.axvline(1, linestyle="--", color="0.6", linewidth=1, zorder=1)
    for name, sweep in sweeps.items():
        x, y = zip(*sorted(zip(sweep.temperatures, sweep.values(measure), strict=True)), strict=True)
        axes.plot(x, y, color=colours[name], linewidth=1.5, label=name, zorder=2)
        best = sweep.best(measure)
        least = sweep.values(measure)[sweep.temperatures.index(best)]
        axes.scatter([best], [least], s=30, color=colours[name], linewidth=0, zorder=3)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="temperature", ylabel=NAMES.get(measure, measure))
    if measure in NAMES:
        axes.set_ylim(bottom=0)
