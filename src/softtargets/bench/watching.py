"""Who is told how far the measuring is. No torch: a command line can subclass it early."""

from __future__ import annotations

from typing import Any


class Watcher:
    """Told what happens; does nothing itself."""

    def planned(self, total: int, done: int) -> None:
        """How many cases there are, and how many of them were found on disk."""

    def started(self, case: str) -> None:
        """A case begins."""

    def finished(self, result: Any) -> None:
        """A case is measured and on disk; what its result is depends on the bench."""
