"""Results of losses as pictures: one panel per size, bars in multiples of the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.losses.results import OURS, LinearResult, LossCase, LossEntry, LossResult
from benchmarks.losses.tables import AnyResult, title
from benchmarks.picture import INK, HBar, draw_bars, legend, logarithmic, multiple, panels, rows_of_bars
from benchmarks.results import BenchResults
from benchmarks.tables import device_name
from benchmarks.text import duration, times
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "ours": BLUE,
    "ours in place": SKY,
    "materialised": GREEN,
    "eager": GREY,
    "compile": ORANGE,
    "liger": PURPLE,
    "torch": RED,
    "cce": "#f0e442",
}
# Multiples of the floor worth a line: one pass over memory, and a kernel that has to read everything twice.
LINES = ((1.0, "floor", (0, ())), (1.5, "two reads, one write", (0, (2, 2))))
BAR = 0.17  # inches
GAP = 0.55  # of a bar, between groups
HEAD = 0.72  # inches around the bars of a panel


def drawings(results: BenchResults) -> dict[str, Figure]:
    """One picture per section."""
    found = {"losses": draw_losses} if results.of(LossResult) else {}
    found |= {"linear": draw_linear} if results.of(LinearResult) else {}
    return {name: draw(results) for name, draw in found.items()}


def draw_losses(results: BenchResults) -> Figure:
    """Forward + backward of every case; where launches dominate, the time per call instead."""
    items = results.of(LossResult)
    sizes: dict[tuple[int, int], list[LossResult]] = {}
    for item in items:
        sizes.setdefault((item.case.rows, item.case.classes), []).append(item)
    columns = 1 if len(sizes) == 1 else 2
    heights = [BAR * _bars(group) + HEAD for group in sizes.values()]
    rows = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    drawing = panels([partial(_panel, items=group) for group in sizes.values()], columns, 6.2, rows, 0.9)
    device = device_name(results.sessions)
    heading = f"Loss, forward + backward{' on ' + device if device else ''}: shorter is better"
    _legend(drawing, heading, items, with_lines=not all(item.by_call for item in items))
    return drawing


def draw_linear(results: BenchResults) -> Figure:
    """The linear section: time and memory beside each other."""
    from matplotlib.figure import Figure

    items = results.of(LinearResult)
    places, bottom = _places(items)
    drawing = Figure(figsize=(11, max(0.26 * _bars(items) + 1.5, 2.6)), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    for item, entry, y in places:
        ratio, lean = entry.over(item.floor), None if entry.lean is None else entry.lean / 1e9
        for axes, value, label in (
            (left, ratio, multiple(times(ratio))),
            (right, lean, f"{lean or 0:.2f} GB"),
        ):
            draw_bars(axes, [_bar(entry, y, value, label, bold=entry.name == OURS)])
    left.axvline(1, color=INK, linewidth=1)
    rows_of_bars(left, _ticks(places, "\n"), bottom, -1)
    left.set_title("Time, in multiples of the three matrix products")
    right.set_title("Peak memory beyond inputs and their gradients, GB")
    for axes in (left, right):
        axes.set_xlim(0, axes.get_xlim()[1] * 1.12)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    sizes = ", ".join(dict.fromkeys(item.case.size for item in items))
    _legend(drawing, f"Projection and loss, forward + backward: {sizes} (rows x hidden x classes)", items)
    return drawing


Place = tuple[Any, LossEntry, float]


def _places(items: Sequence[AnyResult]) -> tuple[list[Place], float]:
    """Who has a bar, at which height; and where the last one ends.

    Who does not exist gets none, who failed an empty one that says so.
    """
    y, places = 0.0, []
    for item in items:
        for entry in item.entries:
            if entry.status != "absent":
                places.append((item, entry, y))
                y += 1
        y += GAP
    return places, y - GAP


def _bars(items: Sequence[AnyResult]) -> float:
    """How many bars high the cases are, with a gap after each."""
    return sum(sum(entry.status != "absent" for entry in item.entries) + GAP for item in items)


def _ticks(places: Sequence[Place], comma: str) -> dict[float, str]:
    """A loss and its precision, in the middle of its bars."""
    heights: dict[Any, list[float]] = {}
    for item, _, y in places:
        heights.setdefault(item.case, []).append(y)
    names = {case: "LABO" if case.loss == "labo" else case.loss.replace("_", " ") for case in heights}
    return {(ys[0] + ys[-1]) / 2: f"{names[case]}{comma}{case.dtype}" for case, ys in heights.items()}


def _bar(entry: LossEntry, y: float, value: float | None, label: str, **how: Any) -> HBar:
    """In place of a bar that there is not: who, and why."""
    why = f"{title(entry.name)}: {entry.reason or 'not measured'}"
    return HBar(y, value, why if value is None else label, COLOURS.get(entry.name, GREY), **how)


def _panel(axes: Axes, items: list[LossResult]) -> None:
    by_call = all(item.by_call for item in items)
    places, bottom = _places(items)
    bars = [_loss_bar(item, entry, y, by_call) for item, entry, y in places]
    low, high = _limits([bar.value for bar in bars if bar.value is not None], by_call)
    draw_bars(axes, bars, low)
    logarithmic(axes, low, high)
    rows_of_bars(axes, _ticks(places, ", "), bottom, -1)
    case: LossCase = items[0].case
    axes.set_title(f"{case.rows:,} rows x {case.classes:,} classes")
    if by_call:
        axes.set_xlabel("microseconds per call, back to back (launches dominate)", fontsize=8.5)
        return
    floors = dict.fromkeys(f"{item.case.dtype} {duration(item.floor)}" for item in items)
    axes.set_xlabel(f"multiples of the floor ({', '.join(floors)})", fontsize=8.5)
    for line, _, dashes in LINES:
        axes.axvline(line, color=INK, linewidth=1, linestyle=dashes, zorder=3)


def _loss_bar(item: LossResult, entry: LossEntry, y: float, by_call: bool) -> HBar:
    """Microseconds per call, or multiples of the floor with their quartiles."""
    seconds = None if entry.status == "failed" else entry.seconds(by_call)
    star, ours = " *" if entry.status == "disagrees" else "", entry.name.startswith(OURS)
    if seconds is None or by_call or entry.time is None:
        micros = None if seconds is None else seconds * 1e6
        return _bar(entry, y, micros, duration(seconds) + star, bold=ours)
    quartiles = (entry.time.low / item.floor, entry.time.high / item.floor)
    value = seconds / item.floor
    return _bar(entry, y, value, multiple(times(value)) + star, bold=ours, quartiles=quartiles)


def _limits(values: Sequence[float], by_call: bool) -> tuple[float, float]:
    low = 10 ** (math.floor(2 * math.log10(min(values))) / 2) * 0.999 if by_call and values else 0.8
    low = min([low, *(0.7 * value for value in values)])
    return low, max([*values, 2 * low, 3.0 if not by_call else 0])


def _legend(drawing: Figure, heading: str, items: Sequence[AnyResult], with_lines: bool = False) -> None:
    """The title of the whole picture, and below it who is who."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = dict.fromkeys(entry.name for item in items for entry in item.entries if entry.time)
    handles: list[Any] = [Patch(color=COLOURS.get(name, GREY), label=title(name)) for name in names]
    for _, name, dashes in LINES if with_lines else ():
        handles.append(Line2D([], [], color=INK, linewidth=1.1, linestyle=dashes, label=name))
    legend(drawing, heading, handles)
