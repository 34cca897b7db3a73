"""What a training tells, put together until the head asks for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from softtargets.executors.ray.orders import Event
from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.training import Watcher

GATHER_SECONDS = 0.2


class Relay(Watcher):
    """Hears of a training in one thread and tells another; of steps only the last of each run.

    >>> from softtargets.recipes import MLP, Digits
    >>> relay, recipe = Relay(), Recipe(data=Digits(), model=MLP(), epochs=1)
    >>> relay.progressed(recipe, 1, 32), relay.progressed(recipe, 2, 32)
    (None, None)
    >>> relay.take(0.0) == [("progressed", recipe.id, (2, 64))]
    True
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._steps: dict[str, tuple[int, int]] = {}
        self._something = threading.Condition()
        self._idle = True
        self._asked: frozenset[str] = frozenset()  # runs of the present order
        self.ended: set[str] = set()  # of these
        self.under_way: set[str] = set()

    def begin(self, asked: Iterable[str]) -> None:
        """An order of these runs begins."""
        self._idle, self._asked, self.ended, self.under_way = False, frozenset(asked), set(), set()

    def end(self) -> None:
        """It is over: whoever waits for news need not wait any longer."""
        with self._something:
            self._idle = True
            self._something.notify_all()

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """At once."""
        self.under_way.add(recipe.id)
        self._add(("started", recipe.id, (step, total_steps)))

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        """How far it is, and the work since the last time that was told."""
        with self._something:
            _, before = self._steps.get(recipe.id, (0, 0))
            self._steps[recipe.id] = step, before + units
            self._something.notify_all()

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """With its metrics."""
        self._add(("epoch", recipe.id, row))

    def noted(self, sentence: str) -> None:
        """As it is."""
        self._add(("noted", "", sentence))

    def reused(self, run: Run) -> None:
        """Another process has finished it; to the head that is the same."""
        self.finished(run)

    def finished(self, run: Run) -> None:
        """That it has ended; what it has come to is in its files."""
        self.under_way.discard(run.id)
        if run.id in self._asked:  # teachers are only looked at
            self.ended.add(run.id)
            self._add(("finished", run.id, None))

    def take(self, seconds: float) -> list[Event]:
        """All since the last call; waits so long for a first event, and a moment for more, while an order goes on."""
        with self._something:
            self._something.wait_for(lambda: self._events or self._steps or self._idle, seconds)
            self._something.wait_for(lambda: self._idle, min(seconds, GATHER_SECONDS))
            events, self._events = self._events, []
            steps, self._steps = self._steps, {}
        # Steps first: a run that has ended makes none any more.
        return [("progressed", run, told) for run, told in steps.items()] + events

    def _add(self, event: Event) -> None:
        with self._something:
            self._events.append(event)
            self._something.notify_all()
