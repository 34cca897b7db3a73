"""Before anything is trained: what is finished already, what is left to do, and whether it can be done."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.recipes import Recipe
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


def left_to_train(
    recipes: Iterable[Recipe], resources: Resources, finisher: Finisher, watcher: Watcher
) -> Todo:
    """Take what is finished already; return, in order and by id, what must be trained, teachers included."""
    asked, store = list(recipes), resources.store
    todo = with_teachers(asked)
    there = {recipe.id: run for recipe in todo.values() if (run := store.find(recipe)) is not None}
    found = {key: run for key, run in there.items() if not finisher.is_wanted_afresh(run)}
    idle = light.not_needed(asked, todo, found)
    todo = {key: recipe for key, recipe in todo.items() if key not in idle}
    again = light.light_teachers(todo, found)
    notes = light.told(found, again)
    found = {key: run for key, run in found.items() if key not in again}
    left = Todo({key: recipe for key, recipe in todo.items() if key not in found})
    _check_all(left.values(), resources)
    for recipe in left.values():
        if recipe.teacher is not None and recipe.teacher.id in found:
            check_can_teach(recipe, found[recipe.teacher.id])
    units = {key: Course(recipe, resources.task(recipe.data)).total_units for key, recipe in left.items()}
    watcher.planned(Plan(runs=len(todo), reused=len(found), units=units))
    for sentence in notes:
        watcher.noted(sentence)
    for key, run in found.items():
        finisher.complete(todo[key], run)
        watcher.reused(run)
    return left


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
