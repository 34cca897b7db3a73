"""Somebody who watches a bench, and may interrupt it."""

from __future__ import annotations

from benchmarks.progress import Quiet


class Seen(Quiet):
    def __init__(self, stop_after: int = 99) -> None:
        self.total, self.done, self.cases, self._stop = 0, 0, [], stop_after

    def planned(self, total, done):
        self.total, self.done = total, done

    def started(self, case):
        if len(self.cases) == self._stop:
            raise KeyboardInterrupt
        self.cases.append(case)
