"""Results of calibration as one picture: a panel per device with the times, and beside it the memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.calibration.results import (
    ALL_OURS,
    INTERVALS,
    OURS,
    STREAMED,
    CalibrationEntry,
    CalibrationResult,
    gain,
)
from benchmarks.calibration.tables import title
from benchmarks.picture import (
    INK,
    HBar,
    Panel,
    draw_bars,
    legend,
    logarithmic,
    multiple,
    panels,
    rows_of_bars,
)
from benchmarks.results import BenchResults
from benchmarks.text import duration, megabytes, times
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


def drawings(results: BenchResults) -> dict[str, Figure]:
    """One picture of everything."""
    return {"calibration": draw_calibration(results)} if results.measured else {}


def draw_calibration(results: BenchResults) -> Figure:
    """Times on the left; on the right, where anybody was weighed, memory for a quarter of the examples and for all."""
    items = results.of(CalibrationResult)
    weighed = any(entry.memory for item in items for entry in item.entries)
    makers: list[Panel] = []
    for item in items:
        makers.append(partial(_times, item=item, results=results))
        makers += [partial(_memory, item=item)] if weighed else []
    heights = [HEAD + BAR * max(1, len(_present(item))) for item in items]
    # One column alone must hold the title of the whole.
    drawing = panels(makers, 2 if weighed else 1, 6.2 if weighed else 7.8, heights, 0.6)
    _legend(drawing, weighed)
    return drawing


def _present(item: CalibrationResult) -> list[CalibrationEntry]:
    """Who does not exist gets no bar; who failed gets an empty one that says so."""
    return [entry for entry in item.entries if entry.status != "absent"]


def _times(axes: Axes, item: CalibrationResult, results: BenchResults) -> None:
    present = _present(item)
    draw_bars(axes, [_bar(place, item, entry, results) for place, entry in enumerate(present)], height=0.72)
    # Room for the longest label, which is longer where there is a CPU to compare with.
    ends = [entry.time.high for entry in present if entry.time is not None]
    axes.set_xlim(0, max(ends, default=1.0) * (1.5 if item.case.device == "cpu" else 2.0))
    _names(axes, present)
    axes.set_title(plain(f"{_place(item, results)}: {item.case.size} logits"))
    axes.set_xlabel("seconds, from logits to the metrics", fontsize=8.5)


def _bar(place: int, item: CalibrationResult, entry: CalibrationEntry, results: BenchResults) -> HBar:
    colour, ours = COLOURS.get(entry.name, GREY), entry.name in ALL_OURS
    if entry.time is None:
        return HBar(place, None, entry.reason or "not measured", colour)
    label = duration(entry.time.median)
    if entry.name != OURS and (ratio := item.ratio(entry.name)) is not None:
        label += f"   {multiple(times(ratio))} ours"
    if (factor := gain(results, item, entry.name)) is not None:
        label += f"   {multiple(times(factor))} the CPU"
    label += " *" if entry.status == "disagrees" else ""
    return HBar(place, entry.time.median, label, colour, ours, (entry.time.low, entry.time.high))


def _place(item: CalibrationResult, results: BenchResults) -> str:
    if item.case.device == "cpu":
        return f"CPU, {item.threads} thread{'s' * (item.threads != 1)}"
    session = results.sessions[item.session] if item.session < len(results.sessions) else {}
    return str(session.get("device_name") or item.case.device)


def _memory(axes: Axes, item: CalibrationResult) -> None:
    present = _present(item)
    peaks = [max(found.peak, 1) / 1e6 for entry in present for found in entry.memory]
    if not peaks:
        axes.set_axis_off()
        return
    low, high = 0.5 * min(peaks), 1.2 * max(peaks)
    bars = [
        HBar(
            place + (which - 0.5) * 0.38,
            max(found.peak, 1) / 1e6,
            megabytes(found.peak),
            COLOURS.get(entry.name, GREY),
            alpha=0.5 if which == 0 else 1,
        )
        for place, entry in enumerate(present)
        for which, found in enumerate(entry.memory)
    ]
    draw_bars(axes, bars, low, height=0.36, fontsize=7)
    logarithmic(axes, low, high)
    _names(axes, present)
    axes.set_title("Peak memory beyond the input")
    axes.set_xlabel("megabytes (logarithmic)", fontsize=8.5)


def _names(axes: Axes, present: list[CalibrationEntry]) -> None:
    labels: dict[float, str] = {place: title(entry.name) for place, entry in enumerate(present)}
    rows_of_bars(axes, labels, len(present) - 0.4, -0.6)


def _legend(drawing: Figure, weighed: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [Line2D([], [], color=INK, linewidth=0.9, label="quartiles")]
    if weighed:
        handles += [
            Patch(color=INK, alpha=0.5, linewidth=0, label="memory for a quarter of the examples"),
            Patch(color=INK, linewidth=0, label="memory for all"),
        ]
    legend(drawing, "Calibration from logits, all metrics against ECE alone: shorter is better", handles)
