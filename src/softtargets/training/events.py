"""How a training is watched. The engine reports; what is shown is someone else's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import Run


@dataclass(frozen=True)
class Plan:
    """What one call of the engine has to do.

    units:  by run id, how much work each run that is to be trained is from its first step to its last, in the unit of
            its data (`Recipe.data.unit`: images, tokens); those of which it is not known are left out.
    """

    runs: int
    reused: int
    units: Mapping[str, int] = field(default_factory=dict)

    @property
    def images(self) -> Mapping[str, int]:
        """The units, by the name they had when all of them were images."""
        return self.units


class Watcher:
    """Is told all that happens and shows nothing; subclass it to show progress."""

    def planned(self, plan: Plan) -> None:
        """Called once, before anything is trained."""

    def reused(self, run: Run) -> None:
        """A run was finished, or had failed, before this call and is taken as it is; said before any starts."""

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """A run begins, or goes on from `step`."""

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        """Some steps are done, so many `units` of work since the last call. Called a few times a second at most."""

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """A run has been measured, as it mostly is at the end of an epoch."""

    def noted(self, sentence: str) -> None:
        """Something that a user should know, and that is no event of one run under way."""

    def waiting(self, recipe: Recipe) -> None:
        """Other processes are training all that is left, this recipe first; we wait. Said once each time."""

    def finished(self, run: Run) -> None:
        """A run is finished, or has failed, here or in another process we waited for."""


class Watchers(Watcher):
    """Several watchers as one: each hears everything, in the order in which they were given."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers
        for event in ("planned", "reused", "started", "progressed", "epoch", "noted", "waiting", "finished"):
            setattr(self, event, partial(self._tell, event))

    def _tell(self, event: str, *told: Any) -> None:
        for watcher in self._watchers:
            getattr(watcher, event)(*told)
