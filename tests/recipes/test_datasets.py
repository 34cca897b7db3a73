from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Literal, get_args, get_origin

import pytest

from softtargets.data import CATALOGUE, load
from softtargets.data.reading import READERS
from softtargets.exceptions import DataError, RecipeError
from softtargets.recipes import CIFAR10, CIFAR100, EMNIST, Dataset, Digits, ImageNet, build
from softtargets.recipes.schema import field_types

from .making import NAMES

DATASETS = list(NAMES[Dataset].values())
SHARED = {"validation", "limit", "standardise"}


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_reader_options_are_the_fields_only_this_dataset_has(part):
    own = {field.name: field.default for field in fields(part) if field.name not in SHARED}
    assert part(validation=3, limit=5, standardise="image").reader_options() == own


def test_reader_options_carry_the_values_given():
    assert CIFAR100(labels="noisy", coarse=True).reader_options() == {"labels": "noisy", "coarse": True}
    assert EMNIST(part="letters").reader_options() == {"part": "letters"}
    assert ImageNet(size=32, validation=9).reader_options() == {"size": 32}
    assert Digits(validation=9).reader_options() == {}


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_every_dataset_has_a_reader_that_takes_exactly_its_options(part):
    parameters = inspect.signature(READERS[part.name]).parameters.values()
    taken = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    assert set(part().reader_options()) == taken


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_every_dataset_is_one_the_data_command_knows(part):
    assert part.name == "digits" or part.name in CATALOGUE


def every_choice(part):
    yield part()
    for name, hint in field_types(part).items():
        if get_origin(hint) is Literal and name not in SHARED:
            yield from (part(**{name: value}) for value in get_args(hint))


@pytest.mark.parametrize(
    "part", [part for part in DATASETS if part is not Digits], ids=lambda part: part.name
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_loading_a_dataset_with_any_choice_fails_only_for_the_missing_files(part, split, tmp_path):
    for chosen in every_choice(part):
        with pytest.raises(DataError, match=r"is missing '|are missing"):
            load(chosen.name, split, tmp_path, **chosen.reader_options())


def test_the_digits_load_with_their_options():
    assert len(load("digits", "train", **Digits().reader_options())) == 1297


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_a_dataset_takes_its_first_examples_unless_told(part):
    assert (part().validation, part().limit, part().standardise) == (0, None, "unit")


def test_an_unknown_dataset_is_refused_with_the_nearest():
    with pytest.raises(RecipeError) as caught:
        build(Dataset, "cifar-10")
    assert str(caught.value) == (
        "'cifar-10' is not known (did you mean 'cifar10'?); allowed: digits, mnist, fashion-mnist, emnist, "
        "cifar10, cifar100, cub200, tiny-imagenet, imagenet, multi30k, tatoeba, iwslt14, iwslt17, wmt14, "
        "parallel-text"
    )


def test_an_option_of_another_dataset_is_refused():
    with pytest.raises(RecipeError) as caught:
        build(Dataset, {"name": "cifar10", "coarse": True})
    assert str(caught.value) == (
        "coarse: no such field of 'cifar10'; allowed: validation, limit, standardise, labels"
    )
    with pytest.raises(
        RecipeError, match=r"labels: 'noisy' is not known.*; allowed: clean, aggregate, worse"
    ):
        CIFAR10(labels="noisy")
