"""How a training is watched. The engine reports; what is shown is someone else's decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import Run


@dataclass(frozen=True)
class Plan:
    """What one call of the engine has to do."""

    runs: int
    reused: int


class Watcher:
    """Hears everything and says nothing; subclass it to show progress."""

    def planned(self, plan: Plan) -> None:
        """Called once, before anything is trained."""

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """A run begins, or goes on from `step`."""

    def progressed(self, recipe: Recipe, step: int, images: int) -> None:
        """Some steps are done; `images` of them since the last call. Called a few times a second at most."""

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """An epoch is done and measured."""

    def waiting(self, recipe: Recipe) -> None:
        """Other processes are training all that is left, this recipe first; we wait. Said once each time."""

    def finished(self, run: Run) -> None:
        """A run is finished, or has failed, here or in another process we waited for."""
