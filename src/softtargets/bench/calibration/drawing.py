"""Results as one picture: a panel per device with the times, and beside it what everybody takes of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softtargets.bench.calibration.results import (
    ALL_OURS,
    INTERVALS,
    OURS,
    STREAMED,
    CaseResult,
    Entry,
    Results,
)
from softtargets.bench.calibration.tables import megabytes, title
from softtargets.bench.look import INK, apologise, legend, round_ticks, write
from softtargets.bench.text import duration, times
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    OURS: BLUE,
    INTERVALS: SKY,
    STREAMED: GREEN,
    "torchmetrics": ORANGE,
    "torchmetrics streamed": PURPLE,
    "netcal": GREY,
}
BAR = 0.36  # inches
HEAD = 1.0  # inches around the bars of a panel


def draw_calibration(results: Results) -> Figure:
    """Times on the left; on the right, where anybody was weighed, memory for a quarter of the examples and for all."""
    from matplotlib.figure import Figure

    weighed = any(entry.memory for item in results.cases for entry in item.entries)
    columns = 2 if weighed else 1
    heights = [HEAD + BAR * max(1, len(_shown(item))) for item in results.cases]
    # One column alone must hold the title of the whole.
    width = 6.2 * columns if weighed else 7.8
    drawing = Figure(figsize=(width, sum(heights) + 0.6), layout="constrained")
    grid = drawing.add_gridspec(len(results.cases), columns, height_ratios=heights)
    for row, item in enumerate(results.cases):
        _times(drawing.add_subplot(grid[row, 0]), item, results)
        if weighed:
            _memory(drawing.add_subplot(grid[row, 1]), item)
    _legend(drawing, weighed)
    return drawing


def _shown(item: CaseResult) -> list[Entry]:
    """Who does not exist gets no bar; who failed gets an empty one that says so."""
    return [entry for entry in item.entries if entry.status != "absent"]


def _times(axes: Axes, item: CaseResult, results: Results) -> None:
    shown = _shown(item)
    ends = [entry.time.high for entry in shown if entry.time is not None]
    for place, entry in enumerate(shown):
        if entry.time is None:
            apologise(axes, entry.reason or "not measured", (0, place))
            continue
        axes.barh(place, entry.time.median, height=0.72, color=COLOURS.get(entry.name, GREY), linewidth=0)
        axes.plot([entry.time.low, entry.time.high], [place] * 2, color=INK, linewidth=0.9)
        label = duration(entry.time.median)
        if entry.name != OURS and (ratio := item.ratio(entry.name)) is not None:
            label += f"   {times(ratio).replace('x', '×')} ours"
        if (gain := results.gain(item, entry.name)) is not None:
            label += f"   {times(gain).replace('x', '×')} the CPU"
        label += " *" if entry.status == "disagrees" else ""
        weight = "bold" if entry.name in ALL_OURS else "normal"
        write(axes, label, (max(entry.time.median, entry.time.high), place), fontweight=weight)
    # Room for the longest label, which is longer where there is a CPU to compare with.
    axes.set_xlim(0, max(ends, default=1.0) * (1.5 if item.case.device == "cpu" else 2.0))
    _names(axes, shown)
    where = f"CPU, {item.threads} thread{'s' * (item.threads != 1)}"
    device = where if item.case.device == "cpu" else _device(results, item)
    axes.set_title(plain(f"{device}: {item.case.examples:,} x {item.case.classes:,} logits"))
    axes.set_xlabel("seconds, from logits to the metrics", fontsize=8.5)


def _memory(axes: Axes, item: CaseResult) -> None:
    shown = _shown(item)
    peaks = [max(found.peak, 1) for entry in shown for found in entry.memory]
    if not peaks:
        axes.set_axis_off()
        return
    low, high = 0.5 * min(peaks) / 1e6, 1.2 * max(peaks) / 1e6
    for place, entry in enumerate(shown):
        for which, found in enumerate(entry.memory):
            value = max(found.peak, 1) / 1e6
            y = place + (which - 0.5) * 0.38
            axes.barh(
                y,
                value - low,
                left=low,
                height=0.36,
                color=COLOURS.get(entry.name, GREY),
                alpha=0.5 if which == 0 else 1,
                linewidth=0,
            )
            write(axes, megabytes(found.peak), (value, y), fontsize=7)
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.2)
    round_ticks(axes.xaxis, low, axes.get_xlim()[1])
    _names(axes, shown)
    axes.set_title("Peak memory beyond the input")
    axes.set_xlabel("megabytes (logarithmic)", fontsize=8.5)


def _names(axes: Axes, shown: list[Entry]) -> None:
    axes.set_yticks(range(len(shown)), [plain(title(entry.name)) for entry in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def _device(results: Results, item: CaseResult) -> str:
    name = results.sessions[item.session].get("device_name") if item.session < len(results.sessions) else None
    return str(name or item.case.device)


def _legend(drawing: Figure, weighed: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Line2D([], [], color=INK, linewidth=0.9, label="quartiles")]
    if weighed:
        handles += [
            Patch(color=INK, alpha=0.5, linewidth=0, label="memory for a quarter of the examples"),
            Patch(color=INK, linewidth=0, label="memory for all"),
        ]
    legend(drawing, "Calibration from logits, all metrics against ECE alone: shorter is better", handles)
