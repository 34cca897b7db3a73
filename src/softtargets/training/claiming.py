"""Which runs this process trains next, and how many of them together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from softtargets.recipes import Recipe
from softtargets.training.devices import free_memory
from softtargets.training.ending import Endings
from softtargets.training.pack import Start
from softtargets.training.packing import kind_of_run
from softtargets.training.sizing import fitting
from softtargets.training.supplies import Kind, Supplies
from softtargets.training.work import Work


class Claims:
    """Takes runs of one kind that no other process is training out of what is to be done (`todo`, by id).

    `sharing` processes share the work, and so also the memory of the device.
    """

    def __init__(self, todo: dict[str, Recipe], supplies: Supplies, endings: Endings, sharing: int) -> None:
        self.todo = todo
        self._supplies = supplies
        self._endings = endings
        self._sharing = max(sharing, 1)
        self._not_now: set[str] = set()  # waiting runs that could not join the present pack
        self._fitting: dict[Kind, int] = {}  # as many as memory was free for when a pack was begun
        self._limits: dict[Kind, int] = {}  # packs that did not fit into memory were halved

    def take(self, locks: ExitStack, joining: Sequence[Work] = ()) -> list[Work]:
        """The next pack: runs of one kind that no other process is training, as many as train well together.

        Or, for a pack in which runs have ended, others to join it. `locks` gives back all that is taken.
        """
        works = list(joining)
        ours = {work.recipe.id for work in works}
        if not works:
            self._not_now.clear()
        kinds = self._ready_kinds()
        ready = [self.todo[key] for key in kinds]
        width = self._width(works[0].recipe, kinds) if works else 1
        place = 0  # where those that others join are
        for recipe in ready:
            if recipe.id in ours or (works and kinds[recipe.id] != kinds[works[0].recipe.id]):
                continue
            if works and len(works) >= width:
                break
            writer = self._supplies.store.claim(recipe)
            if writer is None:
                self._not_now.add(recipe.id)
                continue
            locks.enter_context(writer)
            if writer.finished or self._endings.fail_orphan(recipe, writer):
                run = self._supplies.store.find(recipe)
                writer.release()
                assert run is not None
                self._endings.conclude(self.todo, recipe, run)
                continue
            start = Start(recipe, self._supplies.noisy(recipe), None, writer.restore())
            if works and start.place != place:
                writer.release()
                self._not_now.add(recipe.id)
                continue
            if not works:
                self._measure(recipe)
                width, place = self._width(recipe, kinds), start.place
            start.teacher = self._supplies.teacher(recipe)
            works.append(Work(recipe, writer, start))
        return works

    def width(self, recipe: Recipe) -> int:
        """How many runs of this kind may train together now."""
        return self._width(recipe, self._ready_kinds())

    def halve(self, recipe: Recipe, width: int) -> None:
        """So many runs of this kind did not fit into memory: no more than half of them from now on."""
        self._limits[kind_of_run(recipe)] = width // 2

    def others_wait(self, works: list[Work]) -> bool:
        """Whether runs of the same kind could join, at the beginning of an epoch."""
        ours = {work.recipe.id for work in works}
        kind = kind_of_run(works[0].recipe)
        return any(
            key not in ours
            and key not in self._not_now
            and other == kind
            and not self._supplies.store.is_claimed(self.todo[key])
            for key, other in self._ready_kinds().items()
        )

    def _measure(self, recipe: Recipe) -> None:
        """Note how many runs of this kind fit into memory; later their own pack would be in the way."""
        wanted = self._supplies.arrangement(recipe).runs
        if wanted > 1:
            free = free_memory(self._supplies.device)
            own = None if free is None else free // self._sharing
            self._fitting[kind_of_run(recipe)] = fitting(self._supplies.footprint(recipe), wanted, own)

    def _width(self, recipe: Recipe, kinds: dict[str, Kind]) -> int:
        kind = kinds[recipe.id]
        alike = sum(other == kind for other in kinds.values())
        share = -(-alike // self._sharing)
        known = (limits[kind] for limits in (self._fitting, self._limits) if kind in limits)
        return max(1, min(self._supplies.arrangement(recipe).runs, share, *known))

    def _ready_kinds(self) -> dict[str, Kind]:
        """The kinds of runs that could be trained now: one whose teacher is still being trained must wait with it."""
        return {
            key: kind_of_run(recipe)
            for key, recipe in self.todo.items()
            if recipe.teacher is None or recipe.teacher.id not in self.todo
        }
