"""Results as one picture: bars in multiples of the eager loop for each size, and of Hugging Face for decoding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.picture import HBar, Panel, draw_bars, legend, multiple, panels, rows_of_bars
from benchmarks.results import BenchResults
from benchmarks.tables import device_name
from benchmarks.text import rate, times
from benchmarks.translation.results import COMPILED, EAGER, OURS, DecodingResult, TrainingResult
from benchmarks.translation.sizes import SIZES
from benchmarks.translation.tables import title
from softtargets.report.drawing import BLUE, GREY, ORANGE, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {OURS: BLUE, EAGER: GREY, COMPILED: ORANGE}
BAR, HEAD = 0.34, 0.95  # inches


def drawings(results: BenchResults) -> dict[str, Figure]:
    """One picture of everything."""
    return {"translation": draw_translation(results)} if results.measured else {}


def draw_translation(results: BenchResults) -> Figure:
    """A panel for each size that was trained, and one for each that translated."""
    from matplotlib.patches import Patch

    sizes: dict[tuple[str, int, str, str], list[TrainingResult]] = {}
    for item in results.of(TrainingResult):
        sizes.setdefault(item.case.setting, []).append(item)
    makers: list[Panel] = [partial(_training, items=items) for items in sizes.values()]
    heights = [HEAD + BAR * len(_training_bars(items)) for items in sizes.values()]
    for found in results.of(DecodingResult):
        makers.append(partial(_decoding, item=found))
        heights.append(HEAD + BAR * len(found.entries))
    drawing = panels(makers or [lambda axes: axes.set_axis_off()], 1, 8.2, heights or [1.0], 0.7)
    device = device_name(results.sessions)
    heading = f"Translation{', on ' + device if device else ''}: higher is better"
    known = {OURS: "ours", EAGER: "rival", COMPILED: "rival compiled"}
    legend(drawing, heading, [Patch(color=COLOURS[name], label=label) for name, label in known.items()])
    return drawing


def _training_bars(items: list[TrainingResult]) -> list[tuple[str, HBar]]:
    """The rivals beside the first pack, then every pack: what stands at the left, and the bar."""
    bars: list[tuple[str, HBar]] = []
    for entry in items[0].entries:
        if entry.name != OURS:
            eager = items[0].rate(EAGER)
            value = entry.rate / eager if entry.rate and eager else None
            bars.append((title(entry.name), _bar(len(bars), value, entry.rate, entry.reason, entry.name)))
    for item in items:
        runs = "1 run" if item.case.runs == 1 else f"{item.case.runs} runs"
        ours = item.entry(OURS)
        reason = ours.reason if ours else ""
        bars.append((f"ours, {runs}", _bar(len(bars), item.ratio(), item.rate(), reason, OURS)))
    return bars


def _training(axes: Axes, items: list[TrainingResult]) -> None:
    bars = _training_bars(items)
    _draw(axes, bars)
    case = items[0].case
    shape = f", {SIZES[case.size].title}" if case.size in SIZES else ""
    axes.set_title(plain(f"Training {case.size}{shape}"))
    axes.set_xlabel(
        "times the eager nn.Transformer loop, target tokens per second without padding", fontsize=8.5
    )
    for item in items:
        if item.asked is not None:
            axes.axvline(item.asked, color=GREY, linewidth=0.9, linestyle=(0, (4, 2)))


def _decoding(axes: Axes, item: DecodingResult) -> None:
    slowest = item.rate(item.rival) if item.rival else None
    bars = []
    for place, entry in enumerate(item.entries):
        found = item.rate(entry.name)
        value = found / slowest if found and slowest else None
        name = OURS if entry.name == OURS else EAGER
        bars.append((entry.name, _bar(place, value, found, entry.reason or "nothing to compare with", name)))
    _draw(axes, bars)
    case = item.case
    axes.set_title(
        plain(f"Beam {case.beam}, {case.size}, {case.sentences} sentences to {case.length} tokens")
    )
    axes.set_xlabel("times the fastest of Hugging Face, sentences per second", fontsize=8.5)
    axes.axvline(item.asked, color=GREY, linewidth=0.9, linestyle=(0, (4, 2)))


def _bar(place: int, value: float | None, found: float | None, reason: str, name: str) -> HBar:
    label = f"{multiple(times(value))}  {rate(found)}" if value is not None else reason or "not measured"
    return HBar(place, value, label, COLOURS[name], bold=name == OURS)


def _draw(axes: Axes, bars: list[tuple[str, HBar]]) -> None:
    draw_bars(axes, [bar for _, bar in bars], height=0.72)
    longest = max((bar.value for _, bar in bars if bar.value is not None), default=1.0)
    axes.set_xlim(0, longest * 1.35)
    rows_of_bars(axes, {place: label for place, (label, _) in enumerate(bars)}, len(bars) - 0.4, -0.6)
