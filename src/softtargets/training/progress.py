"""What a training called from Python shows: one line on standard error that is written over again and again."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.training.events import Plan, Watcher

_SECONDS = 0.5  # between two lines on a terminal
_SECONDS_ELSEWHERE = 10.0  # in a file or a notebook, where lines stay


class ProgressLine(Watcher):
    """Runs that are done, the share of the work, and the time; the command line has more.

    >>> line = ProgressLine(sys.stdout)
    >>> line.planned(Plan(runs=3, reused=1))
    softtargets: 1 of 3 runs done, 0 s
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._runs = self._done = self._failed = 0
        self._steps: dict[str, tuple[int, int]] = {}  # of runs under way: how many are done, and of how many
        self._begun = self._shown = time.monotonic()
        self._width = 0

    def planned(self, plan: Plan) -> None:
        """How much there is to do; nothing is said if all is done."""
        self._runs, self._done = plan.runs, plan.reused
        if plan.reused < plan.runs:
            self._show()

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """One more under way."""
        self._steps[recipe.id] = step, total_steps

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        """How far it is, every so often."""
        if recipe.id in self._steps:
            self._steps[recipe.id] = step, self._steps[recipe.id][1]
        if time.monotonic() - self._shown >= (_SECONDS if self._terminal else _SECONDS_ELSEWHERE):
            self._show()

    def noted(self, sentence: str) -> None:
        """On a line of its own."""
        self._stream.write(f"\r{sentence.ljust(self._width)}\n" if self._terminal else f"{sentence}\n")
        self._stream.flush()

    def finished(self, run: Run) -> None:
        """One less; the last one ends the line."""
        self._steps.pop(run.id, None)
        self._done += 1
        self._failed += run.status != "finished"
        if self._done >= self._runs:
            self._show(last=True)

    def _show(self, last: bool = False) -> None:
        self._shown = time.monotonic()
        under_way = sum(step / total for step, total in self._steps.values() if total)
        parts = [f"{self._done} of {self._runs} run{'' if self._runs == 1 else 's'} done"]
        if self._steps:
            parts.append(
                f"{(self._done + under_way) / max(1, self._runs):.0%} of the work".replace("%", " %")
            )
        if self._failed:
            parts.append(f"{self._failed} failed")
        line = f"softtargets: {', '.join(parts)}, {self._shown - self._begun:.0f} s"
        if self._terminal:
            self._stream.write(f"\r{line.ljust(self._width)}" + ("\n" if last else ""))
        else:
            self._stream.write(f"{line}\n")
        self._width = len(line)
        self._stream.flush()
