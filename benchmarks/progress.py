"""What is shown while a bench measures: a line per case, above a bar where somebody watches. No torch here."""

from __future__ import annotations

import sys
import time
from typing import Any


class Quiet:
    """Told what happens; says nothing itself."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left behind."""

    def planned(self, total: int, done: int) -> None:
        """How many cases there are, and how many of them were found on disk."""

    def started(self, case: str) -> None:
        """A case begins."""

    def finished(self, summary: str) -> None:
        """A case is measured and on disk."""


class Lines(Quiet):
    """One line per case on standard error."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._begun = time.monotonic()

    def planned(self, total: int, done: int) -> None:
        """Say how much there is to do."""
        self._total, self._done = total, done
        self._say(f"{total} cases" + (f", {done} of them measured before" if done else ""))

    def started(self, case: str) -> None:
        """Start the clock."""
        self._begun = time.monotonic()

    def finished(self, summary: str) -> None:
        """Say what came out."""
        self._done += 1
        seconds = time.monotonic() - self._begun
        self._say(f"[{self._done}/{self._total}] {summary}  {seconds:.1f} s")

    def _say(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Bar(Lines):
    """The same lines above a bar that says what is being measured and how long it will take."""

    def __init__(self, prelude: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        super().__init__()
        self._bar = Progress(
            BarColumn(bar_width=28),
            TextColumn("{task.completed} of {task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(prelude, total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.stop()

    def started(self, case: str) -> None:
        """And name it beside the bar."""
        super().started(case)
        self._bar.update(self._task, description=case)

    def _say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)
        self._bar.update(self._task, total=self._total, completed=self._done)
