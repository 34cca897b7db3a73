from __future__ import annotations

import inspect

import pytest
import torch

from softtargets.data.augment import AUGMENTATIONS
from softtargets.exceptions import RecipeError
from softtargets.recipes import Affine, Augmentation, Contrast, Crop, Rotation, build, kinds


def test_every_augmentation_a_recipe_names_is_made_in_the_data_room():
    assert list(AUGMENTATIONS) == list(kinds(Augmentation))


@pytest.mark.parametrize("part", kinds(Augmentation).values(), ids=lambda part: part.name)
def test_the_augmentation_takes_exactly_the_fields_with_the_same_defaults(part):
    taken = inspect.signature(AUGMENTATIONS[part.name]).parameters.values()
    assert {parameter.name: parameter.default for parameter in taken} == vars(part())


@pytest.mark.parametrize(
    "part",
    [
        *(part() for part in kinds(Augmentation).values()),
        Crop(size=6, padding=0),
        Contrast(low=1, high=1),
        Affine(degrees=360, translate=1, scale=[0.5, 2], shear=10),
        Rotation(degrees=0),
    ],
    ids=str,
)
def test_the_fields_of_an_augmentation_augment(part):
    size = getattr(part, "size", None) or 8
    # As attributes, and as plain values read from a file.
    for options in (vars(part), {key: value for key, value in part.to_dict().items() if key != "name"}):
        kind = AUGMENTATIONS[part.name](**options)
        drawn = kind.draw(torch.full((3, 4 * kind.blocks), 2**31), (1, 8, 8))
        images = torch.zeros(3, 1, 8, 8, dtype=torch.uint8)
        assert kind.apply(images, drawn).shape == (3, *kind.output_shape((1, 8, 8))) == (3, 1, size, size)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "shift", "pixels": 0}, "pixels: 0 is out of range: must be at least 1"),
        ({"name": "crop", "padding": -1}, "padding: -1 is out of range: must be at least 0"),
        ({"name": "crop", "size": 0}, "size: 0 is out of range: must be at least 1"),
        (
            {"name": "flip", "probability": 2},
            "probability: 2.0 is out of range: must be at least 0 and at most 1",
        ),
        ({"name": "brightness", "delta": -1}, "delta: -1.0 is out of range: must be at least 0"),
        ({"name": "contrast", "low": -1}, "low: -1.0 is out of range: must be at least 0"),
        (
            {"name": "resized_crop", "scale": [0.5, 0.2]},
            "scale: [0.5, 0.2] must have the smaller number first",
        ),
        (
            {"name": "resized_crop", "middle": 0},
            "middle: 0.0 is out of range: must be above 0 and at most 1",
        ),
        ({"name": "colour", "contrast": -0.1}, "contrast: -0.1 is out of range: must be at least 0"),
        ({"name": "contrast", "low": 2}, "low: 2 is above high, which is 1.8; swap them"),
        (
            {"name": "rotation", "degrees": 361},
            "degrees: 361.0 is out of range: must be at least 0 and at most 360",
        ),
        (
            {"name": "affine", "degrees": -1},
            "degrees: -1.0 is out of range: must be at least 0 and at most 360",
        ),
        (
            {"name": "affine", "translate": 2},
            "translate: 2.0 is out of range: must be at least 0 and at most 1",
        ),
        ({"name": "affine", "shear": 90}, "shear: 90.0 is out of range: must be at least 0 and below 90"),
        ({"name": "affine", "scale": [0, 1]}, "scale.0: 0.0 is out of range: must be above 0"),
        ({"name": "affine", "scale": [1]}, "scale: [1] has 1 items, not 2"),
        ({"name": "affine", "scale": 1.5}, "scale: 1.5 is not a list, each item a number above 0"),
        (
            {"name": "affine", "scale": [2, 0.5]},
            "scale: [2, 0.5] must have the smaller factor first",
        ),
        (
            "rotate",
            "'rotate' is not known (did you mean 'rotation'?); allowed: shift, flip, crop, resized_crop, colour, "
            "brightness, contrast, affine, rotation",
        ),
    ],
)
def test_impossible_augmentation_is_refused(value, message):
    with pytest.raises(RecipeError) as caught:
        build(Augmentation, value)
    assert str(caught.value) == message


def test_ranges_of_one_value_are_accepted():
    assert (Contrast(low=0.5, high=0.5).low, Affine(scale=[2, 2]).scale) == (0.5, (2.0, 2.0))


def test_augmentations_of_the_papers_are_the_defaults():
    """TensorFlow's CIFAR-10 tutorial and TF-KD; a default may never change."""
    found = {name: part().to_dict() for name, part in kinds(Augmentation).items()}
    assert found == {
        "shift": {"name": "shift", "pixels": 2},
        "flip": {"name": "flip", "probability": 0.5},
        "crop": {"name": "crop", "padding": 4, "size": None},
        "resized_crop": {
            "name": "resized_crop",
            "size": None,
            "scale": [0.08, 1.0],
            "ratio": [3 / 4, 4 / 3],
            "middle": 0.875,
        },
        "colour": {"name": "colour", "brightness": 0.4, "contrast": 0.4, "saturation": 0.4},
        "brightness": {"name": "brightness", "delta": 63.0},
        "contrast": {"name": "contrast", "low": 0.2, "high": 1.8},
        "affine": {"name": "affine", "degrees": 0.0, "translate": 0.0, "scale": None, "shear": 0.0},
        "rotation": {"name": "rotation", "degrees": 15.0},
    }
