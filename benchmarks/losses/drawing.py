"""Results of losses as pictures: one panel per size, bars in multiples of the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.losses.results import OURS, LinearResult, LossEntry, LossResult
from benchmarks.losses.tables import AnyResult, title
from benchmarks.picture import INK, apologise, bar, bold, legend, logarithmic, multiple, panels, rows_of_bars
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
LINES = ((1.0, "floor"), (1.5, "two reads, one write"))
BAR = 0.17  # inches
GAP = 0.55  # of a bar, between groups
HEAD = 0.72  # inches around the bars of a panel


def draw_losses(results: BenchResults) -> Figure:
    """Forward + backward of every case; where launches dominate, the time per call instead."""
    items = results.of(LossResult)
    sizes: dict[tuple[int, int], list[LossResult]] = {}
    for item in items:
        sizes.setdefault((item.case.rows, item.case.classes), []).append(item)
    columns = 1 if len(sizes) == 1 else 2
    heights = [_bars(group) * BAR + HEAD for group in sizes.values()]
    rows = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    drawing = panels([partial(_panel, items=group) for group in sizes.values()], columns, 6.2, rows, 0.9)
    device = device_name(results.sessions)
    heading = f"Loss, forward + backward{' on ' + device if device else ''}: shorter is better"
    _legend(drawing, heading, items, () if all(item.by_call for item in items) else LINES)
    return drawing


def draw_linear(results: BenchResults) -> Figure:
    """The linear section: time and memory beside each other."""
    from matplotlib.figure import Figure

    items = results.of(LinearResult)
    drawing = Figure(figsize=(11, max(_bars(items) * 0.26 + 1.5, 2.6)), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    groups, bottom = _places(items)
    for item, entry, y in (each for group in groups for each in group):
        style: dict[str, Any] = {
            "colour": COLOURS.get(entry.name, GREY),
            "fontweight": bold(entry.name == OURS),
        }
        ratio, lean = entry.over(item.floor), None if entry.lean is None else entry.lean / 1e9
        for axes, value, label in (
            (left, ratio, multiple(times(ratio))),
            (right, lean, f"{lean or 0:.2f} GB"),
        ):
            if value is None:
                _say(axes, 0, y, entry)
            else:
                bar(axes, y, value, label, **style)
    left.axvline(1, color=INK, linewidth=1)
    _ticks(left, groups, "\n", bottom)
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


def _places(items: Sequence[AnyResult]) -> tuple[list[list[Place]], float]:
    """Who has a bar, at which height, case by case; and where the last ends.

    Who does not exist gets none, who failed gets an empty one that says so.
    """
    y, groups = 0.0, []
    for item in items:
        present = [entry for entry in item.entries if entry.status != "absent"]
        groups.append([(item, entry, y + place) for place, entry in enumerate(present)])
        y += len(present) + GAP
    return groups, y - GAP


def _bars(items: Sequence[AnyResult]) -> float:
    """How many bars high a group of cases is, with the gaps."""
    return _places(items)[1] + GAP


def _ticks(axes: Axes, groups: Sequence[Sequence[Place]], comma: str, bottom: float) -> None:
    """A tick in the middle of each case."""
    labelled = {}
    for group in groups:
        if group:
            case = group[0][0].case
            loss = "LABO" if case.loss == "labo" else case.loss.replace("_", " ")
            labelled[(group[0][2] + group[-1][2]) / 2] = f"{loss}{comma}{case.dtype}"
    rows_of_bars(axes, list(labelled), list(labelled.values()), bottom, -1)


def _panel(axes: Axes, items: list[LossResult]) -> None:
    by_call = all(item.by_call for item in items)
    groups, bottom = _places(items)
    values = {
        (item.case, entry.name): _value(item, entry, by_call) for group in groups for item, entry, _ in group
    }
    low, high = _limits([value for value in values.values() if value is not None], by_call)
    for item, entry, y in (each for group in groups for each in group):
        value = values[item.case, entry.name]
        if value is None:
            _say(axes, low, y, entry)
            continue
        quartiles = None
        if not by_call and entry.time is not None:
            quartiles = (entry.time.low / item.floor, entry.time.high / item.floor)
        label = duration(value / 1e6) if by_call else multiple(times(value))
        label += " *" if entry.status == "disagrees" else ""
        weight = bold(entry.name.startswith(OURS))
        colour = COLOURS.get(entry.name, GREY)
        bar(axes, y, value, label, colour, left=low, quartiles=quartiles, fontweight=weight)
    logarithmic(axes, low, high)
    _ticks(axes, groups, ", ", bottom)
    case = items[0].case
    axes.set_title(f"{case.rows:,} rows x {case.classes:,} classes")
    if by_call:
        axes.set_xlabel("microseconds per call, back to back (launches dominate)", fontsize=8.5)
        return
    floors = dict.fromkeys(f"{item.case.dtype} {duration(item.floor)}" for item in items)
    axes.set_xlabel(f"multiples of the floor ({', '.join(floors)})", fontsize=8.5)
    for line, _ in LINES:
        axes.axvline(line, color=INK, linewidth=1, linestyle=_dashes(line), zorder=3)


def _value(item: LossResult, entry: LossEntry, by_call: bool) -> float | None:
    """How long a bar is: microseconds per call, or multiples of the floor."""
    seconds = entry.seconds(by_call)
    if seconds is None or entry.status == "failed":
        return None
    return seconds * 1e6 if by_call else seconds / item.floor


def _limits(values: Sequence[float], by_call: bool) -> tuple[float, float]:
    low = 10 ** (math.floor(2 * math.log10(min(values))) / 2) * 0.999 if by_call and values else 0.8
    low = min([low, *(0.7 * value for value in values)])
    return low, max([*values, 2 * low, 3.0 if not by_call else 0])


def _say(axes: Axes, x: float, y: float, entry: LossEntry) -> None:
    """In place of a bar: who, and why there is none."""
    apologise(axes, f"{title(entry.name)}: {entry.reason or 'not measured'}", (x, y))


def _legend(
    drawing: Figure, heading: str, items: Sequence[AnyResult], lines: Sequence[tuple[float, str]] = ()
) -> None:
    """The title of the whole picture, and below it who is who."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = dict.fromkeys(entry.name for item in items for entry in item.entries if entry.time)
    handles: list[Any] = [Patch(color=COLOURS.get(name, GREY), label=title(name)) for name in names]
    handles += [
        Line2D([], [], color=INK, linewidth=1.1, linestyle=_dashes(line), label=name) for line, name in lines
    ]
    legend(drawing, heading, handles)


def _dashes(multiple: float) -> tuple[int, tuple[int, ...]]:
    return (0, ()) if multiple == 1 else (0, (2, 2))
