"""A run that this process is training, and the time it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import RunWriter
from softtargets.runs.provenance import now
from softtargets.training.pack import Start


@dataclass
class Work:
    """A run that this process has claimed: where it starts, and since when it has been trained (`begun`)."""

    recipe: Recipe
    writer: RunWriter
    start: Start
    begun: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checkpoint = self.start.checkpoint
        if checkpoint is None:
            self.begun = {"started": now(), "seconds": 0.0, "resumed": 0}
        else:
            self.begun = dict(checkpoint.progress["begun"])
            self.begun["resumed"] += 1


class Clock:
    """Shares the seconds of a pack out among its runs: those of all runs add up to the time it took."""

    def __init__(self, works: list[Work]) -> None:
        self._works = works
        self._last = time.monotonic()

    def tick(self, active: list[int]) -> None:
        """The time since the last call was spent on these runs."""
        moment = time.monotonic()
        for run in active:
            self._works[run].begun["seconds"] += (moment - self._last) / len(active)
        self._last = moment
