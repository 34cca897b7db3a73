"""Results as pictures: one panel per size, bars in multiples of the floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from softtargets.bench.look import INK, apologise, legend, round_ticks, write
from softtargets.bench.losses.results import CaseResult, Entry, LinearResult, Results
from softtargets.bench.losses.tables import TITLES, launch_bound, seconds_of
from softtargets.bench.text import device_name, duration, times
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY

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
}
# Multiples of the floor worth a line: one pass over memory, and a kernel that has to read everything twice.
LINES = ((1.0, "floor"), (1.5, "two reads, one write"))
BAR = 0.17  # inches
GAP = 0.55  # of a bar, between groups
HEAD = 0.72  # inches around the bars of a panel


def draw_losses(results: Results) -> Figure:
    """Forward + backward of every case; where launches dominate, the time per call instead."""
    from matplotlib.figure import Figure

    panels: dict[tuple[int, int], list[CaseResult]] = {}
    for item in results.cases:
        panels.setdefault((item.case.rows, item.case.classes), []).append(item)
    columns = 1 if len(panels) == 1 else 2
    groups = list(panels.items())
    lines = [groups[start : start + columns] for start in range(0, len(groups), columns)]
    heights = [max(_height(items) for _, items in line) for line in lines]
    drawing = Figure(figsize=(6.2 * columns, sum(heights) + 0.9), layout="constrained")
    grid = drawing.add_gridspec(len(lines), columns, height_ratios=heights)
    for row, line in enumerate(lines):
        for column, ((rows, classes), items) in enumerate(line):
            axes = drawing.add_subplot(grid[row, column])
            _panel(axes, f"{rows:,} rows x {classes:,} classes", items)
    device = device_name(results.sessions)
    title = f"Loss, forward + backward{' on ' + device if device else ''}: shorter is better"
    lines_drawn = LINES if any(not launch_bound(item) for item in results.cases) else ()
    _legend(drawing, title, results.cases, lines_drawn)
    return drawing


def draw_linear(results: Results) -> Figure:
    """The linear section: time and memory beside each other."""
    from matplotlib.figure import Figure

    items = results.linear
    height = sum(_slots(item) + GAP for item in items) * 0.26 + 1.5
    drawing = Figure(figsize=(11, max(height, 2.6)), layout="constrained")
    left, right = drawing.subplots(1, 2, sharey=True)
    position, ticks = 0.0, []
    for item in items:
        first = position
        for entry in (entry for entry in item.entries if entry.status != "absent"):
            colour = COLOURS.get(entry.name, GREY)
            ratio = entry.time.median / item.floor if entry.time and item.floor else None
            _plain_bar(left, position, ratio, colour, times(ratio).replace("x", "×"), entry)
            lean = None if entry.lean is None else entry.lean / 1e9
            _plain_bar(right, position, lean, colour, f"{lean or 0:.2f} GB", entry)
            position += 1
        ticks.append(((first + position - 1) / 2, f"{_loss(item)}\n{item.case.dtype}"))
        position += GAP
    left.axvline(1, color=INK, linewidth=1)
    left.set_yticks([tick for tick, _ in ticks], [label for _, label in ticks])
    left.set_ylim(position - GAP, -1)
    left.set_title("Time, in multiples of the three matrix products")
    right.set_title("Peak memory beyond inputs and their gradients, GB")
    for axes in (left, right):
        axes.set_xlim(0, axes.get_xlim()[1] * 1.12)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    sizes = ", ".join(dict.fromkeys(item.case.size for item in items))
    _legend(drawing, f"Projection and loss, forward + backward: {sizes} (rows x hidden x classes)", items)
    return drawing


def _loss(item: CaseResult | LinearResult) -> str:
    return "LABO" if item.case.loss == "labo" else item.case.loss.replace("_", " ")


def _slots(item: CaseResult | LinearResult) -> int:
    """How many bars a case has; who does not exist gets none, who failed gets an empty one that says so."""
    return sum(entry.status != "absent" for entry in item.entries)


def _height(items: list[CaseResult]) -> float:
    return sum(_slots(item) + GAP for item in items) * BAR + HEAD


def _panel(axes: Axes, title: str, items: list[CaseResult]) -> None:
    by_call = all(map(launch_bound, items))

    def value(item: CaseResult, entry: Entry) -> float | None:
        seconds = seconds_of(entry, by_call)
        if seconds is None or entry.status == "failed":
            return None
        return seconds * 1e6 if by_call else seconds / item.floor

    values = [found for item in items for entry in item.entries if (found := value(item, entry)) is not None]
    low = 10 ** (math.floor(2 * math.log10(min(values))) / 2) * 0.999 if by_call and values else 0.8
    low = min([low, *(0.7 * found for found in values)])
    high = max([*values, 2 * low, 3.0 if not by_call else 0])
    position, ticks = 0.0, []
    for item in items:
        first = position
        for entry in (entry for entry in item.entries if entry.status != "absent"):
            found = value(item, entry)
            colour = COLOURS.get(entry.name, GREY)
            if found is None:
                _say(axes, low, position, entry)
            else:
                axes.barh(position, found - low, left=low, height=0.86, color=colour, linewidth=0)
                end = found
                if not by_call and entry.time is not None:
                    end = entry.time.high / item.floor
                    axes.plot([entry.time.low / item.floor, end], [position] * 2, color=INK, linewidth=0.9)
                label = duration(found / 1e6) if by_call else f"{times(found).replace('x', '×')}"
                if entry.status == "disagrees":
                    label += " *"
                _label(axes, max(found, end), position, label, entry.name.startswith("ours"))
            position += 1
        ticks.append(((first + position - 1) / 2, f"{_loss(item)}, {item.case.dtype}"))
        position += GAP
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.2)
    axes.set_ylim(position - GAP, -1)
    axes.set_yticks([tick for tick, _ in ticks], [label for _, label in ticks])
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    round_ticks(axes.xaxis, low, axes.get_xlim()[1])
    axes.set_title(title)
    if by_call:
        axes.set_xlabel("microseconds per call, back to back (launches dominate)", fontsize=8.5)
        return
    floors = dict.fromkeys(f"{item.case.dtype} {duration(item.floor)}" for item in items)
    axes.set_xlabel(f"multiples of the floor ({', '.join(floors)})", fontsize=8.5)
    for line, _ in LINES:
        axes.axvline(line, color=INK, linewidth=1, linestyle=_dashes(line), zorder=3)


def _say(axes: Axes, x: float, y: float, entry: Entry) -> None:
    """In place of a bar: who, and why there is none."""
    apologise(axes, f"{TITLES.get(entry.name, entry.name)}: {entry.reason or 'not measured'}", (x, y))


def _plain_bar(axes: Axes, y: float, value: float | None, colour: str, label: str, entry: Entry) -> None:
    if value is None:
        _say(axes, 0, y, entry)
        return
    axes.barh(y, value, height=0.86, color=colour, linewidth=0)
    _label(axes, value, y, label, entry.name == "ours")


def _legend(
    drawing: Figure,
    title: str,
    items: Sequence[CaseResult | LinearResult],
    lines: Sequence[tuple[float, str]] = (),
) -> None:
    """The title of the whole picture, and below it who is who."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = dict.fromkeys(entry.name for item in items for entry in item.entries if entry.time)
    handles: list[Patch | Line2D] = [
        Patch(color=COLOURS.get(name, GREY), label=TITLES.get(name, name)) for name in names
    ]
    handles += [
        Line2D([], [], color=INK, linewidth=1.1, linestyle=_dashes(line), label=name) for line, name in lines
    ]
    legend(drawing, title, handles)


def _dashes(multiple: float) -> tuple[int, tuple[int, ...]]:
    return (0, ()) if multiple == 1 else (0, (2, 2))


def _label(axes: Axes, x: float, y: float, text: str, ours: bool) -> None:
    write(axes, text, (x, y), fontweight="bold" if ours else "normal")
