from __future__ import annotations

import random
from itertools import islice

import pytest

from softtargets.recipes import Distillation
from softtargets.training import kind_of_run
from softtargets.training.scheduling import Todo
from softtargets.training.scheduling.plan import with_teachers


def naive(todo):
    """Which runs are ready, by looking at all of them: what `Todo` must come to without doing so."""
    return [key for key, recipe in todo.items() if recipe.teacher is None or recipe.teacher.id not in todo]


@pytest.fixture
def recipes(recipe):
    """Two kinds, in turns, and students of either; some students are themselves teachers."""
    plain = [recipe.replace({"seed": seed, "batch": 32 + 32 * (seed % 2)}) for seed in range(12)]
    students = [one.replace({"regulariser": Distillation(teacher=one)}) for one in plain[:5]]
    pupils = [one.replace({"regulariser": Distillation(teacher=one), "seed": 77}) for one in students[:2]]
    return [*pupils, *plain[6:], *students, *plain]


def test_it_is_the_mapping_it_was_made_of(recipes):
    given = with_teachers(recipes)
    todo = Todo(given)
    assert dict(todo) == given
    assert list(todo) == list(given)
    assert len(todo) == len(given) == 19
    first = next(iter(given))
    assert todo.pop(first) == given[first]
    assert first not in todo
    assert list(todo) == list(given)[1:]
    with pytest.raises(KeyError):
        todo.pop(first)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_ready_is_the_same_as_by_looking_at_all(recipes, seed):
    """In whatever order runs come to their end, students before teachers included, as other processes bring about."""
    todo = Todo(with_teachers(recipes))
    order = list(todo)
    kinds = {key: kind_of_run(recipe) for key, recipe in todo.items()}
    random.Random(seed).shuffle(order)
    for ended in order:
        ready = naive(todo)
        assert todo.ready() == list(todo.first_ready()) == ready
        for key in kinds:  # also those that are gone: a pack may consist of runs that have ended
            alike = [other for other in ready if kinds[other] == kinds[key]]
            assert list(todo.alike(key)) == alike
            assert todo.count_alike(key) == len(alike)
            later = [other for other in alike if list(kinds).index(other) > list(kinds).index(key)]
            assert list(todo.alike(key, after=True)) == later
        todo.pop(ended)
    assert not todo
    assert todo.ready() == []


def test_runs_may_be_taken_out_while_others_are_asked_for(recipe):
    todo = Todo(with_teachers(recipe.replace({"seed": seed}) for seed in range(6)))
    keys = list(todo)
    asked = todo.first_ready()
    assert next(asked) == keys[0]
    todo.pop(keys[0])  # another process has finished it
    todo.pop(keys[1])
    assert list(asked) == keys[2:]
    alike = todo.alike(keys[0])
    assert list(islice(alike, 2)) == keys[2:4]
    todo.pop(keys[3])
    todo.pop(keys[4])
    assert list(alike) == keys[5:]
