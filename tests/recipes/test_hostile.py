"""Recipes written by someone who means harm, or is very tired: each gets one clear refusal."""

from __future__ import annotations

import numpy as np
import pytest

from softtargets.exceptions import RecipeError
from softtargets.recipes import MLP, SGD, Model, Recipe, build
from softtargets.recipes.yaml import parse_yaml

PLAIN = "data: digits\nepochs: 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN + "model: {name: [mlp]}", r"model: \['mlp'\] is not known"),
        (PLAIN + "model: {name: {a: 1}}", "model: {'a': 1} is not known"),
        (PLAIN + "model: mlp\nbatch: 1" + "0" * 400, r"batch: 10+\.\.\.0+ is not a whole number"),
        (
            PLAIN + "model: mlp\noptimiser: {name: sgd, lr: 1" + "0" * 400 + "}",
            "optimiser.lr: .* is not a number",
        ),
        (
            "&r {data: digits, model: mlp, epochs: 1, regulariser: {name: distillation, teacher: *r}}",
            "its own teacher",
        ),
        (
            PLAIN + "model: {name: mlp, hidden: &l [*l]}",
            "recursive|nested|not a whole number|is not readable",
        ),
    ],
)
def test_hostile_yaml_is_refused_in_one_short_line(text, message):
    with pytest.raises(RecipeError, match=message) as refusal:
        Recipe.from_yaml(text)
    assert len(str(refusal.value)) < 300
    assert "\n" not in str(refusal.value)


def test_a_billion_laughs_are_not_printed():
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(RecipeError) as refusal:
        Recipe.from_yaml("\n".join([*lines, "data: digits", "model: {name: mlp, hidden: *a11}", "epochs: 1"]))
    assert len(str(refusal.value)) < 300
    with pytest.raises(RecipeError) as refusal:
        Recipe.from_yaml("\n".join(["data: {name: digits, standardise: &x [1]}", "model: mlp", "epochs: 1"]))
    assert len(str(refusal.value)) < 300


def test_numbers_mean_what_people_read():
    assert parse_yaml("{a: 010, b: 1_000, c: -3, d: +4, e: 0}") == {
        "a": 10,
        "b": 1000,
        "c": -3,
        "d": 4,
        "e": 0,
    }
    assert parse_yaml("{a: 2:08, b: 0x10}") == {"a": "2:08", "b": "0x10"}


def test_merge_keys_work_and_may_be_overridden():
    text = "base: &b {lr: 1, momentum: 0.5}\nother: {<<: *b, lr: 2}"
    assert parse_yaml(text)["other"] == {"lr": 2, "momentum": 0.5}


def test_a_path_that_cannot_be_one_is_refused(tmp_path):
    with pytest.raises(RecipeError, match="is not a path"):
        Recipe.load("a\0b")
    with pytest.raises(RecipeError, match="cannot read"):
        Recipe.load(tmp_path)


def test_the_field_of_an_error_survives_reading_from_yaml():
    with pytest.raises(RecipeError) as refusal:
        Recipe.from_yaml(PLAIN + "model: {name: mlp, droput: 0.5}", "my.yaml")
    assert refusal.value.field == "model.droput"
    assert str(refusal.value).startswith("my.yaml: model.droput: no such field")


def test_replace_leaves_the_callers_values_alone_and_takes_names_then_options():
    recipe = Recipe.from_yaml(PLAIN + "model: mlp")
    shared = {"name": "cnn"}
    changed = recipe.replace({"model": shared, "model.hidden": 3})
    assert shared == {"name": "cnn"}
    assert changed.model.hidden == 3
    named = recipe.replace({"data": "cifar10", "data.labels": "worse"})
    assert named.data.labels == "worse"
    assert recipe.replace({"model": MLP(), "model.hidden": [5]}).model.hidden == (5,)


def test_numpy_numbers_are_numbers_and_bytes_are_no_list():
    assert SGD(lr=np.float32(0.5)).lr == 0.5
    assert MLP(hidden=[np.int64(3)]) == MLP(hidden=(3,))
    assert isinstance(MLP(hidden=[np.int64(3)]).hidden[0], int)
    with pytest.raises(RecipeError, match="hidden: b'@' is not a list"):
        MLP(hidden=b"@")
    with pytest.raises(RecipeError, match="not a number"):
        SGD(lr=np.bool_(True))


def test_a_part_is_built_from_its_own_dictionary():
    assert build(MLP, MLP(hidden=(7,)).to_dict()) == MLP(hidden=(7,))
    assert build(Model, MLP(hidden=(7,)).to_dict()) == MLP(hidden=(7,))
    with pytest.raises(RecipeError, match="name: no such field"):
        build(MLP, {"name": "cnn"})


def test_a_length_given_in_the_other_unit_replaces_the_first():
    recipe = Recipe.from_yaml(PLAIN + "model: mlp")
    assert (recipe.replace({"steps": 7}).steps, recipe.replace({"steps": 7}).epochs) == (7, None)
    assert recipe.replace({"steps": 7}).replace({"epochs": 1}) == recipe


def test_mappings_that_merge_each_other_are_refused_at_once():
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 4)}]}}" for n in range(1, 14)]
    with pytest.raises(RecipeError, match="more than 100000 fields"):
        Recipe.from_yaml("\n".join([*lines, "data: digits", "model: mlp", "epochs: 1"]))


def test_a_merge_still_fills_in_and_may_be_overridden():
    assert parse_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}")["b"] == {"x": 1, "y": 3}


def test_layers_are_of_a_size_that_can_be_built():
    with pytest.raises(RecipeError, match="hidden"):
        MLP(hidden=(2**62,))
    with pytest.raises(RecipeError, match="weights between them cannot be counted"):
        MLP(hidden=(10**12, 10**12))
    with pytest.raises(RecipeError, match="100000 layers are too many; give at most 1000"):
        MLP(hidden=(1,) * 100_000)


def test_files_that_have_no_end_are_no_recipes(tmp_path):
    with pytest.raises(RecipeError, match="more than 4 MiB"):
        Recipe.load("/dev/zero")
    (tmp_path / "a.yaml").write_bytes(b"data: digits\r\nmodel: mlp\r\nepochs: 1\r\n")
    assert Recipe.load(tmp_path / "a.yaml").epochs == 1
