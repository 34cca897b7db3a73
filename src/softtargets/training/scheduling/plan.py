"""Before anything is trained: what is finished already, what is left to do, and whether it can be done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.building import build_loss
from softtargets.training.course import Course
from softtargets.training.events import Plan, Watcher
from softtargets.training.optimisers import make_update
from softtargets.training.pack_loss import kind_of_loss
from softtargets.training.scheduling import light
from softtargets.training.scheduling.finisher import Finisher
from softtargets.training.scheduling.resources import Resources
from softtargets.training.scheduling.todo import Todo
from softtargets.training.sizing import outline
from softtargets.training.teaching import check_can_teach


@dataclass(frozen=True)
class Standing:
    """Where recipes stand in a store; nothing of their data is looked at.

    todo:  the recipes and those of their teachers that they need, by id, each after its teacher.
    found: those that are concluded.
    again: ids of light runs that are trained once more, since a student needs their weights.
    notes: what a user must know of light runs, in sentences.
    """

    todo: dict[str, Recipe]
    found: dict[str, Run]
    again: list[str]
    notes: list[str]

    @property
    def left(self) -> Todo:
        """What must be trained."""
        return Todo({key: recipe for key, recipe in self.todo.items() if key not in self.found})

    def check_teachers(self) -> None:
        """Refuse students of finished teachers that cannot teach any more."""
        for recipe in self.left.values():
            if recipe.teacher is not None and recipe.teacher.id in self.found:
                check_can_teach(recipe, self.found[recipe.teacher.id])


def standing(recipes: Iterable[Recipe], store: RunStore, afresh: Callable[[Run], bool]) -> Standing:
    """What is concluded and what is left; `afresh` says of a concluded run whether it is trained once more."""
    asked = list(recipes)
    todo = with_teachers(asked)
    there = {recipe.id: run for recipe in todo.values() if (run := store.find(recipe)) is not None}
    found = {key: run for key, run in there.items() if not afresh(run)}
    idle = light.not_needed(asked, todo, found)
    todo = {key: recipe for key, recipe in todo.items() if key not in idle}
    again = light.light_teachers(todo, found)
    notes = light.told(found, again)
    return Standing(todo, {key: run for key, run in found.items() if key not in again}, again, notes)


def left_to_train(
    recipes: Iterable[Recipe], resources: Resources, finisher: Finisher, watcher: Watcher
) -> Todo:
    """Take what is finished already; return, in order and by id, what must be trained, teachers included."""
    stands = standing(recipes, resources.store, finisher.is_wanted_afresh)
    left = stands.left
    units = checked_units(left.values(), resources)
    stands.check_teachers()
    watcher.planned(Plan(runs=len(stands.todo), reused=len(stands.found), units=units))
    for sentence in stands.notes:
        watcher.noted(sentence)
    for key, run in stands.found.items():
        finisher.complete(stands.todo[key], run)
        watcher.reused(run)
    return left


def checked_units(recipes: Collection[Recipe], resources: Resources) -> dict[str, int]:
    """How much work each recipe is, by id; refuses what cannot be trained."""
    _check_all(recipes, resources)
    return {recipe.id: Course(recipe, resources.task(recipe.data)).total_units for recipe in recipes}


def with_teachers(recipes: Iterable[Recipe]) -> dict[str, Recipe]:
    """Each recipe once, by its id, after the teachers it depends on."""
    ordered: dict[str, Recipe] = {}
    for recipe in recipes:
        if recipe.teacher is not None:
            ordered |= {key: r for key, r in with_teachers([recipe.teacher]).items() if key not in ordered}
        ordered.setdefault(recipe.id, recipe)
    return ordered


def _check_all(recipes: Iterable[Recipe], resources: Resources) -> None:
    """Refuse what cannot be trained; of recipes that differ only in numbers, such as seeds, one is looked at."""
    checked: set[tuple[object, ...]] = set()
    for recipe in recipes:
        teacher = recipe.teacher
        key: tuple[object, ...] = (recipe.data, recipe.model, recipe.batch, recipe.augmentation)
        key += (recipe.optimiser, recipe.noise, recipe.probes, kind_of_loss(recipe))
        key += (teacher.data, teacher.model, teacher.augmentation) if teacher else ()
        if key not in checked:
            checked.add(key)
            task = resources.task(recipe.data)
            task.check(recipe, resources.task(teacher.data) if teacher else None)
            names = [name for name, _ in outline(recipe, task).named_parameters()]
            make_update([recipe.optimiser], names, lead=0)
            build_loss(recipe, len(task.classes), frequencies=task.frequencies())
