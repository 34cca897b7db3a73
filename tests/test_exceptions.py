from __future__ import annotations

import pickle

import pytest

from softtargets.exceptions import (
    DataError,
    RecipeError,
    RunError,
    SofttargetsError,
    StorageError,
    StudyError,
    nearest,
)


@pytest.mark.parametrize("kind", [RecipeError, DataError, RunError, StorageError, StudyError])
def test_everything_raised_on_purpose_can_be_caught_as_one(kind):
    with pytest.raises(SofttargetsError, match="because"):
        raise kind("because")


def test_our_errors_are_not_mistaken_for_others():
    assert SofttargetsError.__mro__[1:] == Exception.__mro__


def test_a_recipe_error_names_its_field():
    error = RecipeError("2 is too much", "alpha")
    assert (str(error), error.field, error.message) == ("alpha: 2 is too much", "alpha", "2 is too much")
    bare = RecipeError("no recipe")
    assert (str(bare), bare.field, bare.message) == ("no recipe", "", "no recipe")


def test_a_recipe_error_seen_from_further_out_names_the_path():
    error = RecipeError("2 is too much", "alpha").inside("regulariser").inside("teacher")
    assert (str(error), error.field) == (
        "teacher.regulariser.alpha: 2 is too much",
        "teacher.regulariser.alpha",
    )
    assert RecipeError("no").inside("model").field == "model"


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        ("alhpa", ["alpha", "spread"], " (did you mean 'alpha'?)"),
        ("ALPHA", ["alpha", "spread"], " (did you mean 'alpha'?)"),
        ("cifar-10", ["CIFAR10", "MNIST"], " (did you mean 'CIFAR10'?)"),
        ("smoothing", ["label_smoothing", "cross_entropy"], " (did you mean 'label_smoothing'?)"),
        ("alpha", ["alpha"], " (did you mean 'alpha'?)"),
        ("zzz", ["alpha", "spread"], ""),
        ("", ["alpha"], ""),
        ("alpha", [], ""),
    ],
)
def test_the_nearest_name_is_suggested_where_there_is_one(value, allowed, expected):
    assert nearest(value, allowed) == expected


def test_the_closest_of_several_wins_and_any_iterable_will_do():
    assert nearest("cifar1000", iter(["cifar10", "cifar100"])) == " (did you mean 'cifar100'?)"
    assert nearest("mnits", {"mnist": 1, "emnist": 2}) == " (did you mean 'mnist'?)"


def test_errors_cross_process_boundaries():
    again = pickle.loads(pickle.dumps(DataError("because")))
    assert (type(again), str(again)) == (DataError, "because")
    again = pickle.loads(pickle.dumps(RecipeError("2 is too much", "alpha")))
    assert (str(again), again.field, again.message) == ("alpha: 2 is too much", "alpha", "2 is too much")
