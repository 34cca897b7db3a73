"""Before anything is trained: what is finished already, what is left to do, and whether it can be done."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.recipes import Recipe
from softtargets.training.checking import check_runnable
from softtargets.training.course import Course
from softtargets.training.ending import Endings
from softtargets.training.pack_loss import kind_of_loss
from softtargets.training.supplies import Supplies
from softtargets.training.watching import Plan, Watcher


def left_to_train(
    recipes: Iterable[Recipe], supplies: Supplies, endings: Endings, watcher: Watcher
) -> dict[str, Recipe]:
    """Take what is finished already; return, in order and by id, what must be trained, teachers included."""
    todo = with_teachers(recipes)
    store = supplies.store
    found = {recipe.id: run for recipe in todo.values() if (run := store.find(recipe)) is not None}
    left = {key: recipe for key, recipe in todo.items() if key not in found}
    _check(left.values(), supplies)
    images = {
        key: Course(recipe, len(supplies.data(recipe.data).splits["train"])).total_images
        for key, recipe in left.items()
    }
    watcher.planned(Plan(runs=len(todo), reused=len(found), images=images))
    for key, run in found.items():
        endings.complete(todo[key], run)
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


def _check(recipes: Iterable[Recipe], supplies: Supplies) -> None:
    """Refuse what cannot be trained; of recipes that differ only in numbers, such as seeds, one is looked at."""
    checked: set[tuple[object, ...]] = set()
    for recipe in recipes:
        teacher = recipe.teacher
        key: tuple[object, ...] = (recipe.data, recipe.model, recipe.batch, recipe.augmentation)
        key += (recipe.optimiser, recipe.noise, recipe.probes, kind_of_loss(recipe))
        key += (teacher.data, teacher.augmentation) if teacher else ()
        if key not in checked:
            checked.add(key)
            taught = supplies.data(teacher.data) if teacher else None
            check_runnable(recipe, supplies.data(recipe.data), taught)
