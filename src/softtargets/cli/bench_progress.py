"""What is shown while a bench measures: a line per case, above a bar where somebody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from softtargets.bench.watching import Watcher


def progress(summary: Callable[[Any], str], before: str) -> Lines:
    """What suits standard error; `summary` puts a result into one line, `before` is what happens before any."""
    return Bar(summary, before) if sys.stderr.isatty() else Lines(summary)


class Lines(Watcher):
    """One line per case."""

    def __init__(self, summary: Callable[[Any], str]) -> None:
        self._summary = summary
        self._total = self._done = 0
        self._begun = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def planned(self, total: int, done: int) -> None:
        """Say how much there is to do."""
        self._total, self._done = total, done
        self._say(f"{total} cases" + (f", {done} of them measured before" if done else ""))

    def started(self, case: str) -> None:
        """Start the clock."""
        self._begun = time.monotonic()

    def finished(self, result: Any) -> None:
        """Say what came out."""
        self._done += 1
        seconds = time.monotonic() - self._begun
        self._say(f"[{self._done}/{self._total}] {self._summary(result)}  {seconds:.1f} s")

    def _say(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Bar(Lines):
    """The same lines above a bar that says what is being measured and how long it will take."""

    def __init__(self, summary: Callable[[Any], str], before: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        super().__init__(summary)
        self._bar = Progress(
            BarColumn(bar_width=28),
            TextColumn("{task.completed} of {task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(before, total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def planned(self, total: int, done: int) -> None:
        """And how long the bar is."""
        super().planned(total, done)
        self._bar.update(self._task, total=total, completed=done)

    def started(self, case: str) -> None:
        """And name it beside the bar."""
        super().started(case)
        self._bar.update(self._task, description=case)

    def finished(self, result: Any) -> None:
        """And move the bar."""
        super().finished(result)
        self._bar.update(self._task, completed=self._done)

    def _say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)
