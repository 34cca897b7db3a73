"""Before anything is trained: what is finished already, what is left to do, and whether it can be done."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.recipes import Recipe
from softtargets.training.building import build_loss
from softtargets.training.course import Course
from softtargets.training.events import Plan, Watcher
from softtargets.training.optimisers import make_update
from softtargets.training.pack_loss import kind_of_loss
from softtargets.training.scheduling.finisher import Finisher
from softtargets.training.scheduling.resources import Resources
from softtargets.training.sizing import outline


def left_to_train(
    recipes: Iterable[Recipe], resources: Resources, finisher: Finisher, watcher: Watcher
) -> dict[str, Recipe]:
    """Take what is finished already; return, in order and by id, what must be trained, teachers included."""
    todo = with_teachers(recipes)
    store = resources.store
    found = {recipe.id: run for recipe in todo.values() if (run := store.find(recipe)) is not None}
    left = {key: recipe for key, recipe in todo.items() if key not in found}
    _check_all(left.values(), resources)
    units = {key: Course(recipe, resources.task(recipe.data)).total_units for key, recipe in left.items()}
    watcher.planned(Plan(runs=len(todo), reused=len(found), units=units))
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
        key += (teacher.data, teacher.augmentation) if teacher else ()
        if key not in checked:
            checked.add(key)
            task = resources.task(recipe.data)
            task.check(recipe, resources.task(teacher.data) if teacher else None)
            names = [name for name, _ in outline(recipe, task).named_parameters()]
            make_update([recipe.optimiser], names, lead=0)
            build_loss(recipe, len(task.classes))
