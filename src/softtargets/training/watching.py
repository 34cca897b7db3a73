"""How a training is watched. The engine reports; what is shown is someone else's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import Run


@dataclass(frozen=True)
class Plan:
    """What one call of the engine has to do.

    images:  by run id, how many images each run that is to be trained sees from its first step to its last; those of
             which it is not known are left out.
    """

    runs: int
    reused: int
    images: Mapping[str, int] = field(default_factory=dict)


class Watcher:
    """Hears everything and says nothing; subclass it to show progress."""

    def planned(self, plan: Plan) -> None:
        """Called once, before anything is trained."""

    def reused(self, run: Run) -> None:
        """A run was finished, or had failed, before this call and is taken as it is; said before any starts."""

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


class Watchers(Watcher):
    """Several watchers as one: each hears everything, in the order in which they were given."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def planned(self, plan: Plan) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.planned(plan)

    def reused(self, run: Run) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.reused(run)

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.started(recipe, step, total_steps)

    def progressed(self, recipe: Recipe, step: int, images: int) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.progressed(recipe, step, images)

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.epoch(recipe, row)

    def waiting(self, recipe: Recipe) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.waiting(recipe)

    def finished(self, run: Run) -> None:
        """To each."""
        for watcher in self._watchers:
            watcher.finished(run)
