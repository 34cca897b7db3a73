from __future__ import annotations

import inspect

import numpy as np
import pytest

from softtargets.exceptions import RecipeError
from softtargets.noise import CORRUPTIONS
from softtargets.recipes import Clean, Noise, Symmetric, build

from .making import NAMES, options_for


def test_every_noise_a_recipe_names_is_made_in_the_noise_room():
    assert set(CORRUPTIONS) == set(NAMES[Noise]) - {"none"}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_the_noise_takes_exactly_the_fields(name):
    taken = set(inspect.signature(CORRUPTIONS[name]).parameters)
    part = NAMES[Noise][name]
    assert taken - {"labels", "classes", "seed", "inputs", "stream"} == set(
        part(**options_for(part)).options()
    )


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
    ("value", "message"),
    [
        ({"name": "symmetric", "rate": 1.01}, "rate: 1.01 is out of range: must be at least 0 and at most 1"),
        (
            "asymmetric",
            "'asymmetric' is not known (did you mean 'symmetric'?); allowed: none, symmetric, pair, "
            "class_conditional, instance",
        ),
        (None, "None is not one of none, symmetric, pair, class_conditional, instance"),
        ("class_conditional", "matrix: is required"),
        (
            {"name": "class_conditional", "matrix": [[1]]},
            "matrix: needs a row for each of at least two classes, not 1",
        ),
        (
            {"name": "class_conditional", "matrix": [[1, 0], [1]]},
            "matrix.1: has 1 numbers, not one for each of 2 rows",
        ),
        (
            {"name": "class_conditional", "matrix": [[1, 0], [0.5, 0.4]]},
            "matrix.1: adds up to 0.9, not to 1; divide it by its sum",
        ),
        (
            {"name": "class_conditional", "matrix": [[1, 0], [1.5, -0.5]]},
            "matrix.1.0: 1.5 is out of range: must be at least 0 and at most 1",
        ),
        ({"name": "pair", "type": "gamma"}, "type: 'gamma' is not known; allowed: alpha, beta"),
    ],
)
def test_impossible_noise_is_refused(value, message):
    with pytest.raises(RecipeError) as caught:
        build(Noise, value)
    assert str(caught.value) == message


def test_rates_of_zero_and_one_are_accepted():
    assert (Symmetric(rate=0).rate, Symmetric(rate=1).rate) == (0.0, 1.0)
