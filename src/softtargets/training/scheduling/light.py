"""Light runs in a training: finished, but without weights, which some students need of their teachers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.teaching import is_taught_by


def light_teachers(todo: Mapping[str, Recipe], found: Mapping[str, Run]) -> list[str]:
    """Runs that must be trained again for their weights: light ones with a student left to train that needs these.

    todo:  recipes by id, each after its teacher.
    found: those of them that are concluded.
    """
    pupils = _pupils(todo)
    again: dict[str, None] = {}
    for key in reversed(list(todo)):  # a light teacher may itself be a student, of another light one
        if key not in found or not found[key].is_light:
            continue
        waiting = (todo[pupil] for pupil in pupils.get(key, ()) if pupil not in found or pupil in again)
        if not all(is_taught_by(student, found[key]) for student in waiting):
            again[key] = None
    return list(again)[::-1]


def _pupils(todo: Mapping[str, Recipe]) -> dict[str, list[str]]:
    """Students by their teacher."""
    found: dict[str, list[str]] = {}
    for key, recipe in todo.items():
        if recipe.teacher is not None:
            found.setdefault(recipe.teacher.id, []).append(key)
    return found


def not_needed(asked: Iterable[Recipe], todo: Mapping[str, Recipe], found: Mapping[str, Run]) -> set[str]:
    """Teachers that nobody asked for and that are not there, all of whose students are light: these are done."""
    wanted = {recipe.id for recipe in asked}
    pupils = _pupils(todo)
    idle: set[str] = set()
    for key in reversed(list(todo)):
        taught = pupils.get(key, [])
        done = [pupil in idle or (pupil in found and found[pupil].is_light) for pupil in taught]
        if key not in wanted and key not in found and taught and all(done):
            idle.add(key)
    return idle


def concluded(store: RunStore, recipe: Recipe, todo: Mapping[str, Recipe]) -> Run | None:
    """The finished or failed run of a recipe; none while it is light and a student in `todo` needs its weights."""
    run = store.find(recipe)
    if run is None or not run.is_light:
        return run
    pupils = (other for other in todo.values() if other.teacher is not None and other.teacher.id == recipe.id)
    return run if all(is_taught_by(student, run) for student in pupils) else None


def told(found: Mapping[str, Run], again: Iterable[str]) -> list[str]:
    """What a user must know of light runs before a training, in sentences."""
    light = sum(run.is_light for run in found.values())
    said = [
        f"Run {key} is light and is trained again: runs that learn from it need its weights." for key in again
    ]
    if others := light - len(said):
        these = (
            "1 finished run is light: it has"
            if others == 1
            else f"{others} finished runs are light: they have"
        )
        said.append(f"{these} no weights, and nothing can be predicted with them.")
    return said
