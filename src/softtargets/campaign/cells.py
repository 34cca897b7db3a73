"""The cells of a campaign: every training that some entry wants, each once, and how far each is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from softtargets.campaign.file import Campaign, Entry
from softtargets.recipes import Recipe
from softtargets.runs import SCORES, Run, RunStore, measured_by, progress_of
from softtargets.training import LESSONS, asks_for_lessons, has_lessons

Status = Literal["done", "failed", "running", "interrupted", "missing", "damaged"]
STATUSES: tuple[Status, ...] = ("done", "missing", "interrupted", "running", "failed", "damaged")
# As the store calls them; what has a directory and no checkpoint is as good as not begun.
_STATUS: Mapping[str, Status] = {
    "finished": "done",
    "failed": "failed",
    "running": "running",
    "interrupted": "interrupted",
    "empty": "missing",
    "damaged": "damaged",
}
# A teacher that no study asks about is kept with what a log of runs needs.
_TEACHERS_KEEP = ("test" + SCORES,)


@dataclass(frozen=True)
class Cell:
    """One training.

    ranks:   of the entries that want it, or a student of it, rising.
    keep:    the splits whose predictions some of its studies need, or students that it teaches by its lessons.
    studies: those that measure it, with the rank of their first entry that does.
    """

    recipe: Recipe
    ranks: tuple[int, ...]
    keep: tuple[str, ...]
    studies: Mapping[str, int] = field(default_factory=dict)

    @property
    def teaches_by_lessons(self) -> bool:
        """Whether some students need no more of it than its lessons."""
        return any(name in (LESSONS, LESSONS + SCORES) for name in self.keep)

    @property
    def rank(self) -> int:
        """Of the first entry that wants it."""
        return self.ranks[0]


@dataclass(frozen=True)
class State:
    """How far a cell is: `share` of its work is done.

    light:      its run is finished, and weights and predictions are not here,
    lessons:    except for those that teach students which need no more of it.
    unmeasured: studies that want numbers of it which are not kept with the light run. They can only be had by another
                training, so the cell is not done; for all other studies it is.
    """

    status: Status
    share: float = 0.0
    light: bool = False
    lessons: bool = False
    unmeasured: frozenset[str] = frozenset()

    def status_for(self, study: str) -> Status:
        """As one study sees it."""
        return "done" if self.unmeasured and study not in self.unmeasured else self.status


MISSING = State("missing")


def cells_of(campaign: Campaign) -> dict[str, Cell]:
    """Every training of the campaign by its id, in the order of the entries, teachers before their students."""
    ranks: dict[str, list[int]] = {}
    keep: dict[str, list[str]] = {}
    measuring: dict[str, dict[str, int]] = {}
    recipes: dict[str, Recipe] = {}
    for entry in campaign.entries:
        for recipe in entry_recipes(entry).values():
            recipes.setdefault(recipe.id, recipe)
            ranks.setdefault(recipe.id, []).append(entry.rank)
        for trial in entry.trials:
            keep.setdefault(trial.recipe.id, []).extend(entry.study.keep)
            measuring.setdefault(trial.recipe.id, {}).setdefault(entry.study.name, entry.rank)
    lessons = {
        one.teacher.id for one in recipes.values() if one.teacher is not None and asks_for_lessons(one)
    }
    kept = {
        key: united([*keep.get(key, _TEACHERS_KEEP), *([LESSONS + SCORES] if key in lessons else [])])
        for key in recipes
    }
    return {
        key: Cell(recipe, tuple(ranks[key]), kept[key], measuring.get(key, {}))
        for key, recipe in recipes.items()
    }


def entry_recipes(entry: Entry) -> dict[str, Recipe]:
    """What an entry has trained, each once, after the teachers it depends on."""
    found: dict[str, Recipe] = {}
    for trial in entry.trials:
        for recipe in [*reversed(list(teachers(trial.recipe))), trial.recipe]:
            found.setdefault(recipe.id, recipe)
    return found


def teachers(recipe: Recipe) -> Iterable[Recipe]:
    """The teacher of a recipe, the teacher's teacher, and so on."""
    while recipe.teacher is not None:
        recipe = recipe.teacher
        yield recipe


def united(splits: Iterable[str]) -> tuple[str, ...]:
    """All splits that several studies need: one that is kept whole needs no scores beside it.

    >>> united(["test:scores", "validation", "test"])
    ('test', 'validation')
    """
    named = set(splits)
    return tuple(sorted(name for name in named if name.removesuffix(SCORES) not in named - {name}))


def states(cells: Mapping[str, Cell], store: RunStore) -> dict[str, State]:
    """How far each cell is in a store."""
    there = {entry.id: entry for entry in store.entries()}
    found = {}
    for key, cell in cells.items():
        entry = there.get(key)
        if entry is None:
            found[key] = MISSING
            continue
        unmeasured = _unmeasured(cell, store) if entry.light else frozenset()
        status = _afresh(cell.recipe, store) if unmeasured else _STATUS[entry.status]
        begun = status in ("interrupted", "running")
        share = _share(cell.recipe, store) if begun else float(status == "done")
        lessons = entry.light and cell.teaches_by_lessons and has_lessons(Run(store.root / key))
        found[key] = State(status, share, entry.light, lessons, unmeasured)
    return found | dict.fromkeys(_spare(cells, found), State("done", 1.0, light=True))


def _spare(cells: Mapping[str, Cell], found: Mapping[str, State]) -> set[str]:
    """Teachers that no study asks about, that are not there, and whose students are all done, as in a merged store."""
    needed = {
        cell.recipe.teacher.id
        for key, cell in cells.items()
        if cell.recipe.teacher is not None and found[key].status != "done"
    }
    idle = {key for key, cell in cells.items() if not cell.studies and key not in needed}
    return {key for key in idle if found[key].status == "missing"}


def _unmeasured(cell: Cell, store: RunStore) -> frozenset[str]:
    run = Run(store.root / cell.recipe.id)
    return frozenset(study for study in cell.studies if measured_by(run, study) is None)


def _afresh(recipe: Recipe, store: RunStore) -> Status:
    """How far another training of a light run is."""
    if store.is_claimed(recipe):
        return "running"
    return "interrupted" if progress_of(store.root / recipe.id) else "missing"


def _share(recipe: Recipe, store: RunStore) -> float:
    """How much of an unfinished run is done, as its checkpoint says."""
    total = recipe.units
    seen = progress_of(store.root / recipe.id).get(recipe.data.unit, 0)
    return min(1.0, max(0.0, seen / total)) if total and isinstance(seen, int | float) else 0.0


def to_train(cells: Mapping[str, Cell], found: Mapping[str, State]) -> set[str]:
    """The cells that still need a training.

    Those that failed or are damaged are not among them: the former would fail again, the latter are for people.
    """
    return {key for key in cells if found[key].status in ("missing", "interrupted", "running")}


def light_teachers(recipe: Recipe, found: Mapping[str, State]) -> list[Recipe]:
    """The teachers that a student needs trained again, because they came without what it needs of them."""
    again: list[Recipe] = []
    for teacher in teachers(recipe):
        state = found[teacher.id]
        if not state.light or state.status != "done" or (state.lessons and asks_for_lessons(recipe)):
            break
        again.append(teacher)
        recipe = teacher
    return again


def wanted_lessons(cells: Mapping[str, Cell], found: Mapping[str, State]) -> set[str]:
    """The teachers whose lessons a student that is left to train will need."""
    left = (cells[key].recipe for key in to_train(cells, found))
    return {
        student.teacher.id for student in left if student.teacher is not None and asks_for_lessons(student)
    }
