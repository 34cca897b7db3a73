"""Which runs this process trains next, and how many of them together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from softtargets.recipes import Recipe
from softtargets.training.devices import free_memory
from softtargets.training.packing import kind_of_run
from softtargets.training.scheduling.finisher import Finisher, Work
from softtargets.training.scheduling.resources import Resources
from softtargets.training.scheduling.todo import Todo
from softtargets.training.sizing import fitting

Kind = tuple[Any, ...]


class Queue:
    """Takes runs of one kind that no other process is training out of what is to be done (`todo`, by id).

    `sharing` processes share the work, and so also the memory of the device, unless only those `beside` do.
    """

    def __init__(
        self,
        todo: Todo,
        resources: Resources,
        finisher: Finisher,
        sharing: int,
        beside: int | None = None,
    ) -> None:
        self.todo = todo
        self._resources = resources
        self._finisher = finisher
        self._sharing = max(sharing, 1)
        self._on_device = max(beside or sharing, 1)
        self._not_now: set[str] = set()  # waiting runs that could not join the present pack
        self._fitting: dict[Kind, int] = {}  # as many as memory was free for when a pack was begun
        self._limits: dict[Kind, int] = {}  # packs that did not fit into memory were halved

    def take(self, locks: ExitStack, joining: Sequence[Work] = ()) -> list[Work]:
        """The next pack: runs of one kind that no other process is training, as many as train well together.

        Or, for a pack in which runs have ended, others to join it. `locks` gives back all that is taken.
        """
        works = list(joining)
        place = 0  # where those that others join are
        if works:
            others = self.todo.alike(works[0].recipe.id)
        else:
            self._not_now.clear()
            first = next((work for key in self.todo.first_ready() if (work := self._claim(key, locks))), None)
            if first is None:
                return []
            self._measure(first.recipe)
            works.append(self._taught(first))
            place = first.place
            others = self.todo.alike(first.recipe.id, after=True)
        width = self.width(works[0].recipe)
        ours = {work.recipe.id for work in works}
        while len(works) < width and (key := next(others, None)) is not None:
            if key not in ours and (work := self._claim(key, locks)) is not None:
                if work.place == place:
                    works.append(self._taught(work))
                else:
                    work.writer.release()
                    self._not_now.add(key)
        return works

    def _taught(self, work: Work) -> Work:
        work.teacher = self._resources.teacher(work.recipe)
        return work

    def _claim(self, key: str, locks: ExitStack) -> Work | None:
        """A run that nobody else is training, unless it has come to its end meanwhile."""
        recipe, store = self.todo[key], self._resources.store
        writer = store.claim(recipe)
        if writer is None:
            self._not_now.add(key)
            return None
        locks.enter_context(writer)
        run = self._finisher.concluded(recipe, self.todo)
        if run is not None or self._finisher.fail_orphan(recipe, writer):
            run = run or store.find(recipe)
            writer.release()
            assert run is not None
            self._finisher.conclude(self.todo, recipe, run)
            return None
        return Work(recipe, self._resources.noisy(recipe), checkpoint=writer.restore(), writer=writer)

    def width(self, recipe: Recipe) -> int:
        """How many runs of this kind may train together now."""
        kind = kind_of_run(recipe)
        share = -(-self.todo.count_alike(recipe.id) // self._sharing)
        known = (limits[kind] for limits in (self._fitting, self._limits) if kind in limits)
        return max(1, min(self._resources.arrangement(recipe).runs, share, *known))

    def halve(self, recipe: Recipe, width: int) -> None:
        """So many runs of this kind did not fit into memory: no more than half of them from now on."""
        self._limits[kind_of_run(recipe)] = width // 2

    def others_wait(self, works: list[Work]) -> bool:
        """Whether runs of the same kind could join, at the beginning of an epoch."""
        ours = {work.recipe.id for work in works}
        return any(
            key not in self._not_now and not self._resources.store.is_claimed(self.todo[key])
            for key in self.todo.alike(works[0].recipe.id)
            if key not in ours
        )

    def _measure(self, recipe: Recipe) -> None:
        """Note how many runs of this kind fit into memory; later their own pack would be in the way."""
        wanted = self._resources.arrangement(recipe).runs
        if wanted > 1:
            free = free_memory(self._resources.device)
            own = None if free is None else free // self._on_device
            self._fitting[kind_of_run(recipe)] = fitting(self._resources.footprint(recipe), wanted, own)
