"""Reliability diagrams, and calibration against temperature. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from softtargets.calibration.binning import Reliability
from softtargets.calibration.sweep import TemperatureSweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DIAGONAL = "0.6"
GAP = "#d62728"


def draw_reliability(
    axes: Axes,
    curves: Mapping[str, Reliability],
    colours: Mapping[str, str],
    fewest: int = 1,
    level: float | None = None,
) -> None:
    """Accuracy over confidence, one line per named curve; the area of a point is its bin's share.

    Bins with fewer than `fewest` examples are not drawn. With a `level`, such as 0.95, each point has the interval of
    its accuracy.
    """
    axes.plot([0, 1], [0, 1], linestyle="--", color=DIAGONAL, linewidth=1, zorder=1)
    for name, curve in curves.items():
        full = curve.counts >= fewest
        share = (curve.counts[full] / curve.counts.sum()).numpy()
        x, y = curve.confidence[full].numpy(), curve.accuracy[full].numpy()
        axes.plot(x, y, color=colours[name], linewidth=1.5, label=name, zorder=2)
        axes.scatter(x, y, s=8 + 220 * share, color=colours[name], alpha=0.75, linewidth=0, zorder=3)
        if level is not None:
            low, high = (end[full].numpy() for end in curve.accuracy_interval(level))
            axes.vlines(x, low, high, color=colours[name], linewidth=1, alpha=0.6, zorder=2)
    axes.set(xlim=(0, 1.02), ylim=(0, 1.02), xlabel="confidence", ylabel="accuracy")
    axes.set_aspect("equal")


def draw_diagram(
    axes: Axes,
    curve: Reliability,
    colour: str = "#1f77b4",
    fewest: int = 1,
    level: float | None = 0.95,
    gap: str = GAP,
    ink: str = "0.1",
) -> None:
    """A reliability diagram of one model: a bar of accuracy for each bin, and its gap to the mean confidence.

    A hatched part that reaches above the bar is confidence the model does not live up to, one inside the bar is
    confidence it lacks; the tick at its end is the bin's mean confidence. Bins with fewer than `fewest` examples are
    not drawn; without a `level` there are no intervals. `gap` is the colour of what is hatched, `ink` that of
    intervals.
    """
    axes.plot([0, 1], [0, 1], linestyle="--", color=DIAGONAL, linewidth=1, zorder=4)
    for entry in curve.table(level or 0.95):
        if entry.count < max(fewest, 1):
            continue
        width, middle = entry.high - entry.low, (entry.low + entry.high) / 2
        axes.bar(middle, entry.accuracy, width, color=colour, edgecolor="white", linewidth=0.5, zorder=2)
        axes.bar(
            middle,
            entry.confidence - entry.accuracy,
            width,
            bottom=entry.accuracy,
            facecolor=(gap, 0.18),
            edgecolor=gap,
            hatch="///",
            linewidth=0.6,
            zorder=3,
        )
        axes.hlines(entry.confidence, entry.low, entry.high, color=gap, linewidth=1.5, zorder=4)
        if level is not None:
            axes.vlines(middle, entry.accuracy_low, entry.accuracy_high, color=ink, linewidth=1.2, zorder=5)
    error = f"ECE {100 * curve.expected_calibration_error:.2f} %"
    axes.text(0.04, 0.96, error, transform=axes.transAxes, va="top")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence", ylabel="accuracy")


def draw_counts(axes: Axes, curve: Reliability, colour: str = "#1f77b4") -> None:
    """The histogram that belongs beneath a diagram: the share of examples in each bin.

    Lines mark the mean confidence (dashed) and the accuracy (solid) of all examples: apart, the model is over- or
    underconfident on the whole.
    """
    table = curve.table()
    middles, widths = zip(*(((e.low + e.high) / 2, e.high - e.low) for e in table), strict=True)
    axes.bar(middles, [e.share for e in table], widths, color=colour, edgecolor="white", linewidth=0.5)
    accuracy = sum(e.share * e.accuracy for e in table if e.count)
    axes.axvline(curve.mean_confidence, color=GAP, linestyle="--", linewidth=1.2, label="mean confidence")
    axes.axvline(accuracy, color="0.1", linewidth=1.2, label="accuracy")
    axes.set(xlim=(0, 1), xlabel="confidence", ylabel="share")
    axes.legend(loc="best", framealpha=0.8, edgecolor="none", fontsize="small")


def reliability_figure(
    curve: Reliability, colour: str = "#1f77b4", fewest: int = 1, level: float | None = 0.95
) -> Figure:
    """A figure of one model: the diagram of `draw_diagram` above the histogram of `draw_counts`, aligned."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 6), layout="constrained")
    above, beneath = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
    draw_diagram(above, curve, colour, fewest, level)
    draw_counts(beneath, curve, colour)
    above.set_xlabel("")
    return figure


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
