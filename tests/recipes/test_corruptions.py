from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from softtargets.data.augment import AUGMENTATIONS
from softtargets.exceptions import RecipeError
from softtargets.noise import CORRUPTIONS
from softtargets.recipes import Augmentation, Clean, Crop, Flip, Noise, Shift, Symmetric, build

from .making import NAMES


def test_every_augmentation_a_recipe_names_is_made_in_the_data_room():
    assert set(AUGMENTATIONS) == set(NAMES[Augmentation])


def test_every_noise_a_recipe_names_is_made_in_the_noise_room():
    assert set(CORRUPTIONS) == set(NAMES[Noise]) - {"none"}


@pytest.mark.parametrize("part", NAMES[Augmentation].values(), ids=lambda part: part.name)
def test_the_augmentation_takes_exactly_the_fields_with_the_same_defaults(part):
    found = list(inspect.signature(AUGMENTATIONS[part.name]).parameters.values())
    assert [parameter.name for parameter in found[:2]] == ["images", "generator"]
    assert {parameter.name: parameter.default for parameter in found[2:]} == vars(part())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_noise_takes_exactly_the_fields(name):
    taken = set(inspect.signature(CORRUPTIONS[name]).parameters)
    assert taken - {"labels", "classes", "seed"} == set(vars(NAMES[Noise][name]()))


@pytest.mark.parametrize("part", [Shift(), Flip(), Crop(), Crop(size=6, padding=0)])
def test_the_fields_of_an_augmentation_augment(part):
    images = torch.zeros(3, 1, 8, 8, dtype=torch.uint8)
    size = getattr(part, "size", None) or 8
    assert AUGMENTATIONS[part.name](images, torch.Generator(), **vars(part)).shape == (3, 1, size, size)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_fields_of_a_noise_corrupt(name):
    part = build(Noise, {"name": name, "rate": 1})
    assert CORRUPTIONS[name](np.zeros(3, np.int64), classes=2, seed=0, **vars(part)).tolist() == [1, 1, 1]


def test_no_noise_is_called_none():
    assert build(Noise, "none") == Clean()


@pytest.mark.parametrize(
    ("slot", "value", "message"),
    [
        (
            Noise,
            {"name": "symmetric", "rate": 1.01},
            "rate: 1.01 is out of range: must be at least 0 and at most 1",
        ),
        (
            Noise,
            "asymmetric",
            "'asymmetric' is not known (did you mean 'symmetric'?); allowed: none, symmetric, pair",
        ),
        (Noise, None, "None is not one of none, symmetric, pair"),
        (Augmentation, {"name": "shift", "pixels": 0}, "pixels: 0 is out of range: must be at least 1"),
        (Augmentation, {"name": "crop", "padding": -1}, "padding: -1 is out of range: must be at least 0"),
        (Augmentation, {"name": "crop", "size": 0}, "size: 0 is out of range: must be at least 1"),
        (
            Augmentation,
            {"name": "flip", "probability": 2},
            "probability: 2.0 is out of range: must be at least 0 and at most 1",
        ),
    ],
)
def test_impossible_corruptions_are_refused(slot, value, message):
    with pytest.raises(RecipeError) as caught:
        build(slot, value)
    assert str(caught.value) == message


def test_rates_of_zero_and_one_are_accepted():
    assert (Symmetric(rate=0).rate, Symmetric(rate=1).rate) == (0.0, 1.0)
