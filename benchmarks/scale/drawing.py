"""Results of the scale bench as one picture: what is done for each run, with all runs, and by several processes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.picture import INK, PALE, Panel, panels, round_ticks, write
from benchmarks.results import BenchResults
from benchmarks.scale.results import COMPETITIONS, EACH, WHOLE, ClaimResult, StoreResult
from benchmarks.scale.tables import TITLES
from benchmarks.text import duration
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, INK, GREY)
STYLES = ("-", "--")
APART = 0.055  # of a panel's height: labels closer than this are moved


def drawings(results: BenchResults) -> dict[str, Figure]:
    """One picture of everything."""
    return {"scale": draw_scale(results)} if results.measured else {}


def draw_scale(results: BenchResults) -> Figure:
    """Curves over the number of runs, of processor time, and over the number of processes."""
    makers: list[Panel] = []
    items = sorted(results.of(StoreResult), key=lambda item: item.case.runs)
    for names, title in (
        (EACH, "For one run, or one pack: flat is good"),
        (WHOLE, "With all runs of a store: a slope of 1 is good"),
    ):
        if any(item.busy(name) for item in items for name in names):
            makers.append(partial(_curves, items=items, names=names, title=title))
    if results.of(ClaimResult):
        makers.append(partial(_competing, results=results))
    return panels(makers, len(makers) or 1, 6.6, [5.6], 0.2)


def _curves(axes: Axes, items: list[StoreResult], names: tuple[str, ...], title: str) -> None:
    ends = []
    low, high = float("inf"), 0.0
    for place, name in enumerate(names):
        points = [(item.case.runs, busy) for item in items if (busy := item.busy(name))]
        if not points:
            continue
        colour, style = COLOURS[place % len(COLOURS)], STYLES[place // len(COLOURS) % len(STYLES)]
        axes.plot(*zip(*points, strict=True), color=colour, linestyle=style, marker="o", markersize=3.5)
        label = f"{plain(TITLES[name].replace('`', ''))} {duration(points[-1][1])}"
        if points[-1][0] < items[-1].case.runs:
            label += f" with {points[-1][0]:,}"
        ends.append(((items[-1].case.runs, points[-1][1]), label, colour))
        low, high = min(low, *(y for _, y in points)), max(high, *(y for _, y in points))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(low / 2, high * 2)
    first, last = items[0].case.runs, items[-1].case.runs
    axes.set_xlim(first / 1.3, last * max(last / first, 10) ** 0.9)  # room for the labels
    round_ticks(axes.yaxis, low / 2, high * 2)
    sizes = [item.case.runs for item in items]
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    _label(axes, ends, low / 2, high * 2)
    axes.set_title(title)
    axes.set_xlabel("finished runs in the store", fontsize=8.5)
    axes.set_ylabel("seconds of processors", fontsize=8.5)


def _label(axes: Axes, ends: list[tuple[tuple[int, float], str, str]], low: float, high: float) -> None:
    """Names beside the ends of curves, moved apart where they would lie on each other."""
    from math import log

    span = log(high / low)
    heights: list[float] = []
    for (_, y), _, _ in sorted(ends, key=lambda end: end[0][1]):
        wanted = log(y / low) / span
        heights.append(max(wanted, heights[-1] + APART) if heights else max(wanted, APART / 2))
    # What was pushed over the top comes down again, and pushes those below.
    limit = 1 - APART / 2
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - APART
    for height, ((x, _), label, colour) in zip(heights, sorted(ends, key=lambda end: end[0][1]), strict=True):
        write(axes, label, (x, low * (high / low) ** height), (8, 0), color=colour)


def _competing(axes: Axes, results: BenchResults) -> None:
    items = sorted(results.of(ClaimResult), key=lambda item: item.case.processes)
    words = {"claims": "claims given back", "finishes": "runs finished"}
    top = 0.0
    for name, colour in zip(COMPETITIONS, (BLUE, ORANGE), strict=True):
        entries = ((item.case.processes, item.entry(name)) for item in items)
        points = [(count, entry.per_second) for count, entry in entries if entry and entry.per_second]
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=3.5)
            write(axes, words[name], points[-1], (-4, 9), color=colour, ha="right")
            top = max(top, *(rate for _, rate in points))
    counts = [item.case.processes for item in items]
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * top or 1)
    axes.set_title("Several processes on one store")
    axes.set_xlabel("processes", fontsize=8.5)
    axes.set_ylabel("per second, all together", fontsize=8.5)
    axes.tick_params(colors=PALE)
