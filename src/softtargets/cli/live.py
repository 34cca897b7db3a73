"""The live view on a terminal: a line for the whole command, and one for each run under way."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.style import Style

from softtargets.cli.console import ConsoleWatcher, describe, duration, failure, overview, rounded, waits
from softtargets.cli.pace import Clock, Lap, common_unit
from softtargets.runs import Run

REFRESHES_PER_SECOND = 3
_BAR = 16
_FULL = "━"
_BOLD, _GREEN = Style(bold=True), Style(color="green")
_ID = 6  # digits of a run's id: they tell apart what has the same name, and `runs show` takes them
_NAME = 24  # characters of a run's name that are worth giving up columns for


class LiveView(ConsoleWatcher):
    """Draws a few times a second, in a thread of its own, whatever the number of events.

    The lock is held while lines are composed, never while something is printed.
    """

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._live = Live(
            get_renderable=self.frame,
            console=console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # a pipe gets only what was meant for it
        )

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def noted(self, sentence: str) -> None:
        """Above the view."""
        self._console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def finished(self, run: Run) -> None:
        """The line goes; a failure stays, above the view."""
        super().finished(run)
        if run.status != "finished":
            line = f"{run.id}  {describe(run.recipe)}  {failure(run)}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def frame(self) -> Frame:
        """The view as it is now, no larger than the terminal."""
        width, height = self._console.size
        height -= 1  # the last row is the cursor's; on it a line would push the first one out of sight
        with self.lock:
            head, more = wrap(overview(self.pace), width), []
            if self.waits:
                more = wrap(waits(self.pace), width)
            room = height - len(head) - len(more)
            more += table(list(self.pace.laps.values()), width, room, self._console.options.ascii_only)
        return Frame(head[:height], [line[:width] for line in more[: max(0, height - len(head))]])


@dataclass(frozen=True)
class Frame:
    """Lines with a little colour. Rich could lay out and colour them, but takes ten times as long."""

    head: Sequence[str]
    lines: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.head:
            yield Segment(line, _BOLD)
            yield Segment.line()
        for line in self.lines:
            start, end = line.find(_FULL), line.rfind(_FULL) + 1
            yield Segment(line[: max(start, 0)])
            yield Segment(line[max(start, 0) : end], _GREEN)
            yield Segment(line[end:])
            yield Segment.line()


class _Column(NamedTuple):
    """One of the columns right of a run's name."""

    heading: str
    cells: list[str]
    width: int


def table(runs: Sequence[Lap], width: int, height: int, plain: bool = False) -> list[str]:
    """Headings and one line per run, as many as fit; `plain` for terminals that know only ASCII.

    A narrow terminal does without some of the columns.
    """
    shown = runs if len(runs) < height else runs[: max(0, height - 2)]
    more = [f"and {len(runs) - len(shown)} more"] if len(shown) < len(runs) and height > 0 else []
    if not shown:
        return more
    full, empty, dots = ("#", "-", "...") if plain else (_FULL, "─", "…")
    longest = max(len(run.name) for run in shown)
    columns, room = _fitting(_columns(shown, full, empty), width, min(longest, _NAME))
    room = max(len(dots), min(room, longest))

    def line(name: str, cells: Iterable[str]) -> str:
        padded = (cell.rjust(column.width) for cell, column in zip(cells, columns, strict=True))
        return "  ".join([_shortened(name, room, dots).ljust(room), *padded])

    rows = zip(*(column.cells for column in columns), strict=True)
    head = line("run", (column.heading for column in columns))
    return [head, *(line(run.name, row) for run, row in zip(shown, rows, strict=True)), *more]


def _columns(runs: Sequence[Lap], full: str, empty: str) -> dict[str, _Column]:
    """What is said of each run, from left to right."""

    def column(heading: str, least: int, cell: Callable[[Lap], str]) -> _Column:
        cells = list(map(cell, runs))
        # At least so wide, so that columns do not move with every digit.
        return _Column(heading, cells, max(least, len(heading), *map(len, cells)))

    unit = common_unit({run.unit for run in runs})
    return {
        "id": column("id", _ID, lambda run: run.id[:_ID]),
        "bar": column("", _BAR, lambda run: _bar(run.fraction, full, empty)),
        "done": column("done", 4, lambda run: f"{run.fraction:.0%}"),
        "step": column("step", 9, lambda run: f"{run.step}/{run.total}"),
        "loss": column(
            "loss", 6, lambda run: f"{run.row['train_loss']:.3f}" if "train_loss" in run.row else ""
        ),
        "accuracy": column("accuracy", 10, lambda run: _accuracy(run.row)),
        "rate": column(f"{unit}/s", 9, lambda run: rounded(run.units_per_second())),
        "left": column("left", 7, lambda run: duration(run.seconds_left())),
    }


def _fitting(columns: dict[str, _Column], width: int, name: int) -> tuple[list[_Column], int]:
    """The columns beside which there is room for a name, and how much; the least important go first."""
    for dispensable in ("", "bar", "id", "step", "rate", "loss", "accuracy", "left"):
        columns.pop(dispensable, None)
        room = width - sum(2 + column.width for column in columns.values())
        if room >= name:
            break
    return list(columns.values()), room


def _shortened(name: str, room: int, dots: str) -> str:
    """Without its middle: what tells runs apart is mostly at the end."""
    if len(name) <= room:
        return name
    end = (room - len(dots)) * 2 // 3
    return name[: room - len(dots) - end] + dots + name[len(name) - end :]


def _bar(fraction: float, full: str, empty: str) -> str:
    done = int(fraction * _BAR)
    return full * done + empty * (_BAR - done)


def _accuracy(row: dict[str, Any]) -> str:
    """On examples kept for that, if there are any; else on the test examples."""
    for split, word in (("validation", "val"), ("test", "test")):
        if f"{split}_accuracy" in row:
            return f"{word} {row[f'{split}_accuracy']:.3f}"
    return ""
