from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from softtargets.data.augment import AUGMENTATIONS
from softtargets.exceptions import RecipeError
from softtargets.noise import CORRUPTIONS
from softtargets.recipes import (
    Affine,
    Augmentation,
    Clean,
    Contrast,
    Crop,
    Noise,
    Rotation,
    Symmetric,
    build,
    kinds,
)

from .making import NAMES, options_for


def test_every_augmentation_a_recipe_names_is_made_in_the_data_room():
    assert list(AUGMENTATIONS) == list(kinds(Augmentation))


def test_every_noise_a_recipe_names_is_made_in_the_noise_room():
    assert set(CORRUPTIONS) == set(NAMES[Noise]) - {"none"}


@pytest.mark.parametrize("part", kinds(Augmentation).values(), ids=lambda part: part.name)
def test_the_augmentation_takes_exactly_the_fields_with_the_same_defaults(part):
    taken = inspect.signature(AUGMENTATIONS[part.name]).parameters.values()
    assert {parameter.name: parameter.default for parameter in taken} == vars(part())


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_noise_takes_exactly_the_fields(name):
    taken = set(inspect.signature(CORRUPTIONS[name]).parameters)
    part = NAMES[Noise][name]
    assert taken - {"labels", "classes", "seed", "inputs", "stream"} == set(
        part(**options_for(part)).options()
    )


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


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_fields_of_a_noise_corrupt(name):
    options = {"matrix": [[0, 1], [1, 0]]} if name == "class_conditional" else {"rate": 1}
    part = build(Noise, {"name": name, **options})
    seen = {"inputs": np.zeros((3, 2))} if name == "instance" else {}
    found = CORRUPTIONS[name](np.zeros(3, np.int64), classes=2, seed=0, **part.options(), **seen)
    assert found.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_noise_spares_held_out_labels_unless_it_is_of_beta_type(name):
    needed = options_for(NAMES[Noise][name])
    assert not build(Noise, {"name": name, **needed}).on_held_out
    assert build(Noise, {"name": name, "type": "beta", **needed}).on_held_out
    assert not Clean().on_held_out


def test_noise_of_alpha_type_keeps_the_identity_it_had():
    assert Symmetric(rate=0.3, type="alpha").canonical() == {"name": "symmetric", "rate": 0.3}
    assert Symmetric(rate=0.3, type="beta").canonical() == {"name": "symmetric", "rate": 0.3, "type": "beta"}


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
            "'asymmetric' is not known (did you mean 'symmetric'?); allowed: none, symmetric, pair, "
            "class_conditional, instance",
        ),
        (Noise, None, "None is not one of none, symmetric, pair, class_conditional, instance"),
        (Noise, "class_conditional", "matrix: is required"),
        (
            Noise,
            {"name": "class_conditional", "matrix": [[1]]},
            "matrix: needs a row for each of at least two classes, not 1",
        ),
        (
            Noise,
            {"name": "class_conditional", "matrix": [[1, 0], [1]]},
            "matrix.1: has 1 numbers, not one for each of 2 rows",
        ),
        (
            Noise,
            {"name": "class_conditional", "matrix": [[1, 0], [0.5, 0.4]]},
            "matrix.1: adds up to 0.9, not to 1; divide it by its sum",
        ),
        (
            Noise,
            {"name": "class_conditional", "matrix": [[1, 0], [1.5, -0.5]]},
            "matrix.1.0: 1.5 is out of range: must be at least 0 and at most 1",
        ),
        (
            Noise,
            {"name": "pair", "type": "gamma"},
            "type: 'gamma' is not known; allowed: alpha, beta",
        ),
        (Augmentation, {"name": "shift", "pixels": 0}, "pixels: 0 is out of range: must be at least 1"),
        (Augmentation, {"name": "crop", "padding": -1}, "padding: -1 is out of range: must be at least 0"),
        (Augmentation, {"name": "crop", "size": 0}, "size: 0 is out of range: must be at least 1"),
        (
            Augmentation,
            {"name": "flip", "probability": 2},
            "probability: 2.0 is out of range: must be at least 0 and at most 1",
        ),
        (
            Augmentation,
            {"name": "brightness", "delta": -1},
            "delta: -1.0 is out of range: must be at least 0",
        ),
        (Augmentation, {"name": "contrast", "low": -1}, "low: -1.0 is out of range: must be at least 0"),
        (Augmentation, {"name": "contrast", "low": 2}, "low: 2 is above high, 1.8; exchange them"),
        (
            Augmentation,
            {"name": "rotation", "degrees": 361},
            "degrees: 361.0 is out of range: must be at least 0 and at most 360",
        ),
        (
            Augmentation,
            {"name": "affine", "degrees": -1},
            "degrees: -1.0 is out of range: must be at least 0 and at most 360",
        ),
        (
            Augmentation,
            {"name": "affine", "translate": 2},
            "translate: 2.0 is out of range: must be at least 0 and at most 1",
        ),
        (
            Augmentation,
            {"name": "affine", "shear": 90},
            "shear: 90.0 is out of range: must be at least 0 and below 90",
        ),
        (Augmentation, {"name": "affine", "scale": [0, 1]}, "scale.0: 0.0 is out of range: must be above 0"),
        (Augmentation, {"name": "affine", "scale": [1]}, "scale: [1] has 1 items, not 2"),
        (
            Augmentation,
            {"name": "affine", "scale": 1.5},
            "scale: 1.5 is not a list, each a number above 0",
        ),
        (
            Augmentation,
            {"name": "affine", "scale": [2, 0.5]},
            "scale: [2, 0.5] must go from the smallest factor to the largest",
        ),
        (
            Augmentation,
            "rotate",
            "'rotate' is not known (did you mean 'rotation'?); allowed: shift, flip, crop, brightness, contrast, "
            "affine, rotation",
        ),
    ],
)
def test_impossible_corruptions_are_refused(slot, value, message):
    with pytest.raises(RecipeError) as caught:
        build(slot, value)
    assert str(caught.value) == message


def test_rates_of_zero_and_one_are_accepted():
    assert (Symmetric(rate=0).rate, Symmetric(rate=1).rate) == (0.0, 1.0)


def test_ranges_of_one_value_are_accepted():
    assert (Contrast(low=0.5, high=0.5).low, Affine(scale=[2, 2]).scale) == (0.5, (2.0, 2.0))


def test_augmentations_of_the_papers_are_the_defaults():
    """TensorFlow's CIFAR-10 tutorial and TF-KD; a default may never change."""
    found = {name: part().to_dict() for name, part in kinds(Augmentation).items()}
    assert found == {
        "shift": {"name": "shift", "pixels": 2},
        "flip": {"name": "flip", "probability": 0.5},
        "crop": {"name": "crop", "padding": 4, "size": None},
        "brightness": {"name": "brightness", "delta": 63.0},
        "contrast": {"name": "contrast", "low": 0.2, "high": 1.8},
        "affine": {"name": "affine", "degrees": 0.0, "translate": 0.0, "scale": None, "shear": 0.0},
        "rotation": {"name": "rotation", "degrees": 15.0},
    }
