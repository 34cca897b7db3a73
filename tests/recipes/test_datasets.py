from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Literal, get_args, get_origin

import pytest

from softtargets.data import CATALOGUE, load, load_pairs
from softtargets.data.reading import FOLDER_OPTIONS, INDICES, OPTIONS, READERS
from softtargets.exceptions import DataError, RecipeError
from softtargets.recipes import (
    CIFAR10,
    CIFAR100,
    EMNIST,
    IWSLT14,
    WMT14,
    Dataset,
    Digits,
    ImageDataset,
    ImageFolder,
    ImageNet,
    Multi30k,
    Tatoeba,
    TranslationDataset,
    build,
)
from softtargets.recipes.schema import field_types

from .making import NAMES, options_for

EVERY = list(NAMES[Dataset].values())
DATASETS = [part for part in EVERY if issubclass(part, ImageDataset)]
CORPORA = [part for part in EVERY if issubclass(part, TranslationDataset)]
SHARED = {"validation", "limit", "standardise"}


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_reader_options_are_the_fields_only_this_dataset_has(part):
    needed = options_for(part)
    own = {field.name: field.default for field in fields(part) if field.name not in SHARED} | needed
    assert part(validation=3, limit=5, standardise="image", **needed).reader_options() == own


def test_reader_options_carry_the_values_given():
    assert CIFAR100(labels="noisy", coarse=True).reader_options() == {"labels": "noisy", "coarse": True}
    assert EMNIST(part="letters").reader_options() == {"part": "letters"}
    decoded = {"size": 32, "keep": "picture", "draft": True}
    assert ImageNet(size=32, keep="picture", draft=True, validation=9).reader_options() == decoded
    assert Digits(validation=9).reader_options() == {}


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_every_dataset_has_a_reader_that_takes_exactly_its_options(part):
    if part.name in INDICES:
        taken = {*OPTIONS, *FOLDER_OPTIONS} if part is ImageFolder else {*OPTIONS} - {"upright"}
        assert set(part(**options_for(part)).reader_options()) == taken
        return
    parameters = inspect.signature(READERS[part.name]).parameters.values()
    taken = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    assert set(part(**options_for(part)).reader_options()) == taken


@pytest.mark.parametrize("part", EVERY, ids=lambda part: part.name)
def test_every_dataset_is_one_the_data_command_knows(part):
    assert part.name in ("digits", "parallel-text", "arrays", "image-folder") or part.name in CATALOGUE


@pytest.mark.parametrize("part", CORPORA, ids=lambda part: part.name)
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_corpus_that_is_not_there_says_what_is_missing(part, split, tmp_path):
    data = part(**options_for(part))
    for source, target in data.languages:
        with pytest.raises(DataError, match=r"is missing '|has neither"):
            load_pairs(data.name, source, target, split, tmp_path)


@pytest.mark.parametrize("part", CORPORA, ids=lambda part: part.name)
def test_a_corpus_is_made_of_tokens_and_always_has_something_to_choose_by(part):
    data = part(**options_for(part))
    assert (data.task, data.unit) == ("translation", "tokens")
    assert data.splits == ("train", "validation", "test")


def test_several_languages_may_be_translated_at_once():
    assert Tatoeba(source="de+fr").languages == (("de", "en"), ("fr", "en"))
    assert Multi30k().languages == (("en", "de"),)


@pytest.mark.parametrize("part", [Multi30k, IWSLT14, WMT14], ids=lambda part: part.name)
def test_a_language_is_not_translated_into_itself(part):
    with pytest.raises(RecipeError, match="target: en is also the source; give a different language"):
        part(source="en", target="en")


def every_choice(part):
    yield part(**options_for(part))
    for name, hint in field_types(part).items():
        if get_origin(hint) is Literal and name not in SHARED:
            yield from (part(**{name: value}) for value in get_args(hint))


@pytest.mark.parametrize(
    "part", [part for part in DATASETS if part not in (Digits, ImageFolder)], ids=lambda part: part.name
)
@pytest.mark.parametrize("split", ["train", "test"])
def test_loading_a_dataset_with_any_choice_fails_only_for_the_missing_files(part, split, tmp_path):
    for chosen in every_choice(part):
        with pytest.raises(DataError, match=r"is missing '|are missing|there are no arrays mine.npz"):
            load(chosen.name, split, tmp_path, **chosen.reader_options())


def test_the_digits_load_with_their_options():
    assert len(load("digits", "train", **Digits().reader_options())) == 1297


@pytest.mark.parametrize("part", DATASETS, ids=lambda part: part.name)
def test_a_dataset_takes_its_first_examples_unless_told(part):
    data = part(**options_for(part))
    assert (data.validation, data.limit, data.standardise) == (0, None, "unit")


def test_an_unknown_dataset_is_refused_with_the_nearest():
    with pytest.raises(RecipeError) as caught:
        build(Dataset, "cifar-10")
    assert str(caught.value) == (
        "'cifar-10' is not known (did you mean 'cifar10'?); allowed: digits, mnist, fashion-mnist, emnist, "
        "cifar10, cifar100, cub200, tiny-imagenet, imagenet, image-folder, arrays, multi30k, tatoeba, iwslt14, "
        "iwslt17, wmt14, parallel-text"
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


def test_the_work_of_an_epoch_is_known_where_its_size_is():
    assert Digits().epoch_units == 1297
    assert Digits(validation=97, limit=100).epoch_units == 100
    assert EMNIST().epoch_units is None
    assert Multi30k().epoch_units == pytest.approx(443_528, rel=0.02)  # as it was counted
    assert Tatoeba().epoch_units == pytest.approx(1_541_288, rel=0.02)
    assert Tatoeba(source="de+fr").epoch_units == pytest.approx(2_790_659, rel=0.12)
    assert Multi30k(limit=100).epoch_units == 1520
    assert IWSLT14().epoch_units is None


@pytest.mark.parametrize("folder", ["", "/photos", "~/photos", "../photos", "a/../../b"])
def test_a_folder_of_ones_own_is_a_name_and_no_path(folder):
    with pytest.raises(RecipeError, match=r"folder: .*softtargets data folder PATH"):
        ImageFolder(folder=folder)


def test_how_files_are_decoded_is_part_of_an_identity_and_its_defaults_are_not():
    """What was trained before there was a choice keeps its name."""
    assert ImageNet(size=32).canonical() == {"name": "imagenet", "size": 32}
    assert ImageNet(size=32, keep="picture").canonical() == {
        "name": "imagenet",
        "size": 32,
        "keep": "picture",
    }
