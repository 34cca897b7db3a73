"""Results as one picture: a panel per net, images per second against the number of runs trained together."""

from __future__ import annotations

import re
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from benchmarks import picture
from benchmarks.results import BenchResults
from benchmarks.tables import device_name
from benchmarks.text import rate, times
from benchmarks.training.nets import TRAINED
from benchmarks.training.results import EAGER, OURS, AccuracyResult, TrainingResult
from benchmarks.training.tables import difference, rivals_of, title, verdict
from softtargets.report.drawing import BLUE, GREY, ORANGE, SKY, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

LABELS = {"stacked": "stacked", "streams": "on streams"}
_LINES: dict[str, dict[str, Any]] = {
    "stacked": {"color": BLUE, "linewidth": 1.8, "marker": "o", "markersize": 5},
    "streams": {"color": SKY, "linewidth": 1.8, "marker": "s", "markersize": 5},
    EAGER: {"color": GREY, "linewidth": 1.8},
    f"{EAGER} bf16": {"color": ORANGE, "linewidth": 1.6, "linestyle": (0, (4, 2))},
}
COLUMNS = 2
WIDTH, HEIGHT = 5.7, 3.0  # inches of a panel


def drawings(results: BenchResults) -> dict[str, Figure]:
    """One picture of everything."""
    return {"training": draw_training(results)} if results.measured else {}


def draw_training(results: BenchResults) -> Figure:
    """Multiples of the eager loop on the left, images per second on the right; then the accuracies."""
    nets: dict[tuple[Any, ...], list[TrainingResult]] = {}
    for item in results.of(TrainingResult):
        nets.setdefault((*item.case.setting, item.case.precision), []).append(item)
    makers: list[picture.Panel] = [partial(_speed_panel, items=items) for items in nets.values()]
    makers += [partial(_accuracy_panel, item=item) for item in results.of(AccuracyResult)]
    columns = min(COLUMNS, len(makers))
    drawing = picture.panels(makers, columns, WIDTH, [HEIGHT] * -(-len(makers) // columns), 0.7)
    device = device_name(results.sessions)
    heading = f"Training, augmentation and evaluation included{', on ' + device if device else ''}: higher is better"
    picture.legend(drawing, heading, _handles(results))
    return drawing


def _speed_panel(axes: Axes, items: list[TrainingResult]) -> None:
    case = items[0].case
    ratios = [1.0, *(found for item in items if (found := item.ratio()) is not None)]
    room = max(max(ratios) / min(ratios), 3.0)
    low, high = min(0.7, min(ratios) / room**0.25), max(2.5, max(ratios) * room**0.25)
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    sizes = sorted({item.case.runs for item in items})
    axes.set_xscale("log", base=2)
    axes.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6 * (sizes[-1] / sizes[0]) ** 0.05)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    picture.round_ticks(axes.yaxis, low, high)
    axes.grid(axis="x", visible=False)
    _rivals(axes, items)
    for arrangement in LABELS:
        _series(axes, [item for item in items if item.case.arrangement == arrangement], items)
    axes.set_title(plain(TRAINED[case.net].title if case.net in TRAINED else case.net))
    axes.set_xlabel(f"runs trained together (batch {case.batch} each, {case.precision})", fontsize=8.5)
    axes.set_ylabel("times the eager loop", fontsize=8.5)


def _series(axes: Axes, items: list[TrainingResult], panel: list[TrainingResult]) -> None:
    """One arrangement: a line through the packs, labelled; bold is what the engine itself would do."""
    points = [(item.case.runs, ratio, item) for item in items if (ratio := item.ratio()) is not None]
    if points:
        runs, ratios, _ = zip(*points, strict=True)
        axes.plot(runs, ratios, zorder=4, **_LINES[items[0].case.arrangement])
    sizes = sorted({item.case.runs for item in panel})
    for size, ratio, item in points:
        side = 1 if _is_best(item, panel) else -1
        label = f"{picture.multiple(times(ratio))}\n{rate(item.rate())}"
        shift, align = _aside(size, sizes)
        how = {"ha": align, "fontweight": "bold" if item.chosen else "normal", "linespacing": 1.1}
        picture.write(axes, label, (size, ratio), (shift, 13 * side), **how)
    bottom = axes.get_ylim()[0]
    for item in items:
        if item.ratio() is None:
            picture.apologise(
                axes, _why(item), (item.case.runs, bottom), (0, 5), rotation=90, va="bottom", ha="center"
            )


def _aside(size: int, sizes: list[int]) -> tuple[float, str]:
    """How far a label goes to the side, and how it is aligned, so that it does not run into its neighbour's.

    >>> _aside(64, [1, 64, 128]), _aside(128, [1, 64, 128]), _aside(64, [32, 64, 128])
    ((8, 'right'), (-8, 'left'), (0, 'center'))
    """
    # A label is about as wide as a fifth of the axis, which is logarithmic.
    near = (sizes[-1] / sizes[0]) ** 0.2
    place = sizes.index(size)
    if place + 1 < len(sizes) and sizes[place + 1] / size < near:
        return 8, "right"
    if place and size / sizes[place - 1] < near:
        return -8, "left"
    return 0, "center"


def _is_best(item: TrainingResult, panel: list[TrainingResult]) -> bool:
    """Whether no other arrangement of so many runs is faster: its label goes above, the others' below."""
    alike = [other.ratio() or 0.0 for other in panel if other.case.runs == item.case.runs]
    return (item.ratio() or 0.0) >= max(alike)


def _why(item: TrainingResult) -> str:
    for entry in item.entries:
        if entry.status == "failed":
            who = item.case.arrangement if entry.name == OURS else title(entry.name)
            return f"{who}: {entry.reason}"
    return "not measured"


def _rivals(axes: Axes, items: list[TrainingResult]) -> None:
    """The eager loop is the line at 1, and gives the scale on the right; others are where they were beside it."""
    eager = [found for item in items if (found := item.rate(EAGER)) is not None]
    if not eager:
        return
    lines = _beside_eager(items)
    for name, height in lines.items():
        axes.axhline(height, zorder=3, **_LINES.get(name, _LINES[EAGER]))
    # Between two packs, and on the side of the line where no other rival is: ours may be near.
    first, second = (*sorted({item.case.runs for item in items}), 2)[:2]
    away = (0, -7 if max(lines.values()) > 1 else 7)
    label = f"{title(EAGER)}: {rate(fmean(eager))}"
    picture.write(axes, label, ((first * second) ** 0.5, 1.0), away, color=picture.PALE, ha="center")
    _images_per_second(axes, fmean(eager))


def _beside_eager(items: list[TrainingResult]) -> dict[str, float]:
    """The speed of each rival over that of the eager loop beside it, on average over the cases."""
    found: dict[str, list[float]] = {}
    for item in items:
        own = item.rate(EAGER)
        for entry in item.entries:
            if own and entry.rate and entry.name != OURS:
                found.setdefault(entry.name, []).append(entry.rate / own)
    return {name: fmean(ratios) for name, ratios in found.items()}


def _images_per_second(axes: Axes, eager: float) -> None:
    """A second scale on the right."""
    from matplotlib.ticker import NullLocator

    def absolute(multiple: Any) -> Any:
        return multiple * eager

    def relative(images: Any) -> Any:
        return images / eager

    right = axes.secondary_yaxis("right", functions=(absolute, relative))
    ticks = picture.round_numbers(*(eager * limit for limit in axes.get_ylim()))
    right.set_ticks(ticks, labels=[re.sub(r"\.0+(?= )", "", rate(tick)) for tick in ticks])
    right.yaxis.set_minor_locator(NullLocator())
    right.set_ylabel("images per second", fontsize=8.5)
    right.tick_params(labelsize=8.5)


def _accuracy_panel(axes: Axes, item: AccuracyResult) -> None:
    case = item.case
    axes.set_title(plain(f"Accuracy on {case.data}, {case.epochs} epochs: a dot per seed"))
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks([0, 1], [f"ours, {case.precision}", title(EAGER)])
    axes.set_ylim(1.6, -0.8)
    for place, (values, colour) in enumerate(((item.ours, BLUE), (item.eager, GREY))):
        if not values:
            picture.apologise(axes, item.reason or "not measured", (0.0, place))
            continue
        shown = [100 * value for value in values]
        axes.plot(shown, [place] * len(shown), "o", color=colour, alpha=0.55, markersize=6, markeredgewidth=0)
        mean = fmean(shown)
        axes.plot([mean, mean], [place - 0.22, place + 0.22], color=picture.INK, linewidth=1.6)
        picture.write(axes, f"{mean:.2f} %", (mean, place - 0.22), (0, 7), ha="center", fontweight="bold")
    axes.margins(x=0.25)
    axes.set_xlabel("test accuracy, per cent", fontsize=8.5)
    if item.ours and item.eager:
        axes.text(
            0.99,
            0.03,
            plain(f"difference {difference(item)} (s.e.): {verdict(item)}"),
            transform=axes.transAxes,
            ha="right",
            va="bottom",
            fontsize=8.5,
            color=picture.INK,
        )


def _handles(results: BenchResults) -> list[Line2D]:
    from matplotlib.lines import Line2D

    arrangements = dict.fromkeys(item.case.arrangement for item in results.of(TrainingResult))
    named = {name: f"ours, {LABELS[name]}" for name in arrangements}
    named |= {name: title(name) for name in rivals_of(results)}
    handles = [
        Line2D([], [], label=label, **_LINES.get(name, _LINES[EAGER])) for name, label in named.items()
    ]
    if any(item.chosen for item in results.of(TrainingResult)):
        handles.append(Line2D([], [], linestyle="", label="bold: as the engine arranges them"))
    return handles
