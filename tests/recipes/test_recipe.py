from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softtargets.exceptions import RecipeError
from softtargets.recipes import (
    CIFAR10,
    CIFAR100,
    CNN,
    EMNIST,
    MLP,
    MNIST,
    SGD,
    Adam,
    Cosine,
    Crop,
    CrossEntropy,
    Digits,
    Distillation,
    Flip,
    LabelSmoothing,
    Model,
    Pair,
    Recipe,
    Shift,
    Step,
    Symmetric,
    dump_yaml,
)

from .making import NAMES, plain_recipe, recipes

MODELS = ", ".join(NAMES[Model])


def refusal(call, *arguments, **options):
    with pytest.raises(RecipeError) as caught:
        call(*arguments, **options)
    return caught.value


TEACHER = Recipe(
    data=MNIST(validation=5000),
    model=MLP(dropout=0.5),
    regulariser=LabelSmoothing(alpha=0.1),
    optimiser=SGD(lr=0.1, momentum=0.9, dampening=0.9),
    augmentation=[Shift(pixels=2)],
    epochs=60,
)
STUDENT = Recipe(
    data=MNIST(validation=5000),
    model=MLP(hidden=[800, 800]),
    regulariser=Distillation(teacher=TEACHER, temperature=4, beta=0.9, student_temperature=True),
    optimiser=Adam(),
    epochs=60,
    seed=3,
)

# These identities are the names of stored runs. A change to any of them orphans every run ever made, so a
# test that fails here means: undo the change, or raise recipe.FORMAT on purpose and say so in the changelog.
PINNED = [
    (
        Recipe(data=Digits(), model=MLP(hidden=[64]), epochs=5),
        {"data": {"name": "digits"}, "epochs": 5, "model": {"hidden": [64], "name": "mlp"}},
        "c09cdec1a4980acf",
    ),
    (
        Recipe(data=Digits(), model=CNN(), regulariser=LabelSmoothing(), steps=100),
        {
            "data": {"name": "digits"},
            "model": {"name": "cnn"},
            "regulariser": {"name": "label_smoothing"},
            "steps": 100,
        },
        "2d327f54e8edc96e",
    ),
    (
        Recipe(
            data=CIFAR10(validation=5000, standardise="image", labels="worse"),
            model=CNN(channels=[16, 32], dropout=0.5),
            regulariser=LabelSmoothing(alpha=0.2, spread="others"),
            optimiser=SGD(lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
            schedule=Step(milestones=[60, 120], factor=0.2, warmup=5),
            augmentation=[Crop(padding=4), Flip()],
            noise=Symmetric(rate=0.4),
            epochs=200,
            batch=64,
            seed=7,
            precision="bf16",
        ),
        {
            "augmentation": [{"name": "crop"}, {"name": "flip"}],
            "batch": 64,
            "data": {"labels": "worse", "name": "cifar10", "standardise": "image", "validation": 5000},
            "epochs": 200,
            "model": {"channels": [16, 32], "dropout": 0.5, "name": "cnn"},
            "noise": {"name": "symmetric", "rate": 0.4},
            "optimiser": {
                "lr": 0.05,
                "momentum": 0.9,
                "name": "sgd",
                "nesterov": True,
                "weight_decay": 0.0005,
            },
            "precision": "bf16",
            "regulariser": {"alpha": 0.2, "name": "label_smoothing", "spread": "others"},
            "schedule": {"factor": 0.2, "milestones": [60, 120], "name": "step", "warmup": 5},
            "seed": 7,
        },
        "45401f90c168fd03",
    ),
    (
        TEACHER,
        {
            "augmentation": [{"name": "shift"}],
            "data": {"name": "mnist", "validation": 5000},
            "epochs": 60,
            "model": {"dropout": 0.5, "name": "mlp"},
            "optimiser": {"dampening": 0.9, "momentum": 0.9, "name": "sgd"},
            "regulariser": {"name": "label_smoothing"},
        },
        "4ce0f405f958f287",
    ),
    (
        STUDENT,
        {
            "data": {"name": "mnist", "validation": 5000},
            "epochs": 60,
            "model": {"hidden": [800, 800], "name": "mlp"},
            "optimiser": {"name": "adam"},
            "regulariser": {
                "beta": 0.9,
                "name": "distillation",
                "student_temperature": True,
                "teacher": {
                    "augmentation": [{"name": "shift"}],
                    "data": {"name": "mnist", "validation": 5000},
                    "epochs": 60,
                    "model": {"dropout": 0.5, "name": "mlp"},
                    "optimiser": {"dampening": 0.9, "momentum": 0.9, "name": "sgd"},
                    "regulariser": {"name": "label_smoothing"},
                },
                "temperature": 4.0,
            },
            "seed": 3,
        },
        "41b97bc834b69719",
    ),
]


@pytest.mark.parametrize(("recipe", "canonical", "identity"), PINNED)
def test_identities_are_what_they_have_always_been(recipe, canonical, identity):
    assert recipe.canonical() == canonical
    text = json.dumps(canonical | {"format": 2}, sort_keys=True, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == identity
    assert recipe.id == identity


@pytest.mark.parametrize("recipe", [case[0] for case in PINNED])
def test_a_recipe_comes_back_from_every_form_it_is_written_in(recipe):
    for text in (
        yaml.safe_dump(recipe.to_dict()),
        json.dumps(recipe.to_dict()),
        yaml.dump(recipe.canonical()),
    ):
        assert Recipe.from_yaml(text) == recipe
    assert pickle.loads(pickle.dumps(recipe)) == recipe


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(recipes())
def test_any_recipe_survives_yaml_and_json(recipe):
    tree = recipe.to_dict()
    again = Recipe.from_yaml(dump_yaml(tree))
    assert (again, again.id) == (recipe, recipe.id)
    again = Recipe.from_dict(json.loads(json.dumps(tree)))
    assert (again, again.id) == (recipe, recipe.id)


def reworded(tree, draw):
    """The same meaning in other types: keys in another order, tuples for lists, floats for whole numbers."""
    if isinstance(tree, dict):
        return {key: reworded(tree[key], draw) for key in draw(st.permutations(list(tree)))}
    if isinstance(tree, list):
        return draw(st.sampled_from([list, tuple]))(reworded(item, draw) for item in tree)
    if isinstance(tree, float) and tree.is_integer():
        return draw(st.sampled_from([tree, int(tree)]))
    if isinstance(tree, int) and not isinstance(tree, bool):
        return draw(st.sampled_from([tree, float(tree)]))
    return tree


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(recipe=recipes(), data=st.data())
def test_the_same_meaning_in_other_types_and_orders_has_the_same_id(recipe, data):
    other = Recipe.from_dict(reworded(recipe.to_dict(), data.draw))
    assert (other, other.id, hash(other)) == (recipe, recipe.id, hash(recipe))


def leaves(value, path=""):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from leaves(item, f"{path}.{position}")
    elif path.split(".")[-1] != "name":
        yield path, value


def nearby(value):
    """Values of the same type that a field might also accept."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [
            "unit",
            "channel",
            "epoch",
            "step",
            "all",
            "others",
            "fp32",
            "tf32",
            "clean",
            "noisy",
            "letters",
        ]
    if isinstance(value, float):
        return [value / 2, value + 0.001, 0.25]
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [1, [5]]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(recipe=recipes(), data=st.data())
def test_a_change_anywhere_in_a_recipe_changes_its_id(recipe, data):
    path, old = data.draw(st.sampled_from(list(leaves(recipe.to_dict()))))
    for new in nearby(old):
        try:
            changed = recipe.replace({path: new})
        except RecipeError:
            continue
        if new != old:
            assert changed.id != recipe.id
            # The length is given in one unit; giving it in the other has taken the first away.
            length = {"epochs": recipe.epochs, "steps": recipe.steps} if path in ("epochs", "steps") else {}
            assert changed.replace({path: old, **length}).id == recipe.id


def test_a_default_written_out_changes_nothing():
    spelt = plain_recipe(
        regulariser="cross_entropy",
        optimiser={"name": "sgd", "lr": 0.1, "momentum": 0},
        schedule={"name": "constant", "warmup": 0},
        batch=128.0,
        augmentation=(),
        noise="none",
        seed=0,
        steps=None,
    )
    assert spelt.id == plain_recipe().id


NEW = {"multiplier": 1, "clip": None, "average": None, "measure_every": None, "measure_epochs": 1}


@pytest.mark.parametrize(("recipe", "canonical", "identity"), PINNED)
def test_fields_that_came_later_leave_identities_as_they_were(recipe, canonical, identity):
    optimiser = recipe.optimiser.to_dict() | {"rates": {}, "decay_on": [], "decay_form": "gradient"}
    spelt = recipe.replace(NEW | {"optimiser": optimiser})
    assert (spelt.id, spelt.canonical()) == (identity, canonical)


@pytest.mark.parametrize(
    ("changes", "canonical"),
    [
        ({"multiplier": 3}, {"multiplier": 3.0}),
        ({"clip": 1}, {"clip": 1.0}),
        ({"average": 0.9999}, {"average": 0.9999}),
        ({"average": 0}, {"average": 0.0}),
        ({"measure_every": 50.0}, {"measure_every": 50}),
        ({"measure_epochs": 14}, {"measure_epochs": 14}),
        (
            {"optimiser.rates": {"head.*": 0.1}, "optimiser.decay_on": ["*.weight"]},
            {"optimiser": {"name": "sgd", "rates": [["head.*", 0.1]], "decay_on": ["*.weight"]}},
        ),
        ({"optimiser.decay_form": "loss"}, {"optimiser": {"name": "sgd", "decay_form": "loss"}}),
        ({"schedule": "inverse_sqrt"}, {"schedule": {"name": "inverse_sqrt"}}),
    ],
)
def test_each_of_them_is_part_of_the_identity_once_it_is_used(changes, canonical):
    changed = plain_recipe().replace(changes)
    assert changed.canonical() == plain_recipe().canonical() | canonical
    assert changed.id != plain_recipe().id
    assert Recipe.from_yaml(yaml.safe_dump(changed.to_dict())) == changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"multiplier": 0}, "multiplier: 0.0 is out of range: must be above 0"),
        ({"multiplier": None}, "multiplier: None is not a number"),
        ({"clip": 0}, "clip: 0.0 is out of range: must be above 0"),
        ({"clip": True}, "clip: True is not a number"),
        ({"average": 1}, "average: 1.0 is out of range: must be at least 0 and below 1"),
        ({"average": -0.1}, "average: -0.1 is out of range: must be at least 0 and below 1"),
        ({"measure_every": 0}, "measure_every: 0 is out of range: must be at least 1"),
        ({"measure_every": 2.5}, "measure_every: 2.5 is not a whole number"),
        ({"measure_epochs": 0}, "measure_epochs: 0 is out of range: must be at least 1"),
        ({"measure_epochs": None}, "measure_epochs: None is not a whole number"),
    ],
)
def test_the_whole_message_for_a_length_or_a_rate_that_cannot_be(changes, message):
    assert str(refusal(plain_recipe, **changes)) == message


def test_layers_are_chosen_by_a_mapping_in_yaml():
    text = """
    data: digits
    model: mlp
    optimiser:
      name: adam
      rates: {head.bias: 2, head.*: 1e-1}
      decay_on: ["*.weight"]
    epochs: 1
    """
    optimiser = Recipe.from_yaml(text).optimiser
    assert optimiser.rates == (("head.bias", 2.0), ("head.*", 0.1))
    assert optimiser.decay_on == ("*.weight",)


def test_different_parts_with_no_options_have_different_ids():
    changes = [
        {"model": "cnn"},
        {"schedule": "cosine"},
        {"schedule": "linear"},
        {"optimiser": "adam"},
        {"noise": "pair"},
        {"noise": "symmetric"},
        {"augmentation": ["flip"]},
        {"augmentation": ["flip", "shift"]},
        {"augmentation": ["shift", "flip"]},
        {"epochs": None, "steps": 5},
        {"data": "mnist"},
        {},
    ]
    identities = {plain_recipe().replace(change).id for change in changes}
    assert len(identities) == len(changes)


def test_an_id_is_sixteen_hexadecimal_digits():
    identity = plain_recipe().id
    assert len(identity) == 16
    assert set(identity) <= set("0123456789abcdef")


def test_a_recipe_is_frozen_and_can_be_a_key():
    recipe = plain_recipe()
    with pytest.raises(dataclasses.FrozenInstanceError):
        recipe.batch = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del recipe.batch
    assert {recipe: 1}[plain_recipe()] == 1


def test_asking_for_the_id_does_not_change_what_a_recipe_equals():
    asked, fresh = plain_recipe(), plain_recipe()
    assert asked.id
    assert asked == fresh
    assert asked.to_dict() == fresh.to_dict()


def test_the_teacher_is_the_recipe_the_regulariser_names():
    assert STUDENT.teacher is TEACHER
    assert TEACHER.teacher is None


def test_changing_the_teacher_changes_the_student():
    changed = STUDENT.replace({"regulariser.teacher.seed": 1})
    assert changed.id != STUDENT.id
    assert changed.teacher.id == TEACHER.replace({"seed": 1}).id
    assert changed.replace({"regulariser.teacher": TEACHER}).id == STUDENT.id


def test_teachers_may_have_teachers():
    grandchild = STUDENT.replace({"regulariser": {"name": "distillation", "teacher": STUDENT.to_dict()}})
    assert grandchild.teacher == STUDENT
    assert grandchild.teacher.teacher == TEACHER
    deep = "regulariser.teacher.regulariser.teacher.model.dropout"
    changed = grandchild.replace({deep: 0.25})
    assert changed.teacher.teacher.model.dropout == 0.25
    assert changed.id != grandchild.id
    assert Recipe.from_yaml(yaml.safe_dump(changed.to_dict())) == changed
    error = refusal(grandchild.replace, {deep: 2})
    assert error.field == deep


@pytest.mark.parametrize(
    ("lengths", "given"), [({"epochs": 5, "steps": 5}, "both are given"), ({}, "neither is given")]
)
def test_the_length_is_given_exactly_once(lengths, given):
    error = refusal(Recipe, data=Digits(), model=MLP(), **lengths)
    assert str(error) == f"epochs: give either epochs or steps; {given}"


@pytest.mark.parametrize(
    ("taught", "learnt"),
    [
        (MNIST(), Digits()),
        (CIFAR100(coarse=True), CIFAR100()),
        (EMNIST(part="letters"), EMNIST()),
        (CIFAR10(), CIFAR100()),
    ],
)
def test_a_teacher_of_other_classes_is_refused(taught, learnt):
    teacher = plain_recipe(data=taught)
    error = refusal(plain_recipe, data=learnt, regulariser=Distillation(teacher=teacher))
    assert str(error) == (
        f"regulariser.teacher.data: the teacher's classes ({taught.name}) are not the student's "
        f"({learnt.name}); train both on the same dataset"
    )


@pytest.mark.parametrize(
    ("taught", "learnt"),
    [
        (CIFAR10(labels="worse"), CIFAR10()),
        (CIFAR100(labels="noisy", coarse=True), CIFAR100(coarse=True)),
        (Digits(limit=100, validation=10, standardise="channel"), Digits()),
        (EMNIST(part="letters"), EMNIST(part="letters")),
    ],
)
def test_a_teacher_may_see_other_examples_of_the_same_classes(taught, learnt):
    teacher = plain_recipe(data=taught)
    assert plain_recipe(data=learnt, regulariser=Distillation(teacher=teacher)).teacher.data == taught


def test_a_teacher_of_other_classes_is_refused_deep_inside_too():
    error = refusal(STUDENT.replace, {"regulariser.teacher.data": "digits"})
    assert error.field == "regulariser.teacher.data"
    nested = {"name": "distillation", "teacher": plain_recipe(data="cifar10").to_dict()}
    error = refusal(STUDENT.replace, {"regulariser.teacher.regulariser": nested})
    assert error.field == "regulariser.teacher.regulariser.teacher.data"


FULL = plain_recipe(
    regulariser=LabelSmoothing(alpha=0.1),
    augmentation=[Shift(pixels=1), Flip()],
    schedule=Step(milestones=[2, 4]),
    noise=Pair(rate=0.2),
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, FULL),
        ({"batch": 32}, dataclasses.replace(FULL, batch=32)),
        ({"regulariser.alpha": 0.3}, dataclasses.replace(FULL, regulariser=LabelSmoothing(alpha=0.3))),
        ({"model.hidden.0": 8}, dataclasses.replace(FULL, model=MLP(hidden=[8]))),
        ({"model.hidden": [8, 4]}, dataclasses.replace(FULL, model=MLP(hidden=[8, 4]))),
        ({"schedule.milestones.1": 3}, dataclasses.replace(FULL, schedule=Step(milestones=[2, 3]))),
        ({"augmentation.0.pixels": 3}, dataclasses.replace(FULL, augmentation=(Shift(pixels=3), Flip()))),
        ({"augmentation.1": "crop"}, dataclasses.replace(FULL, augmentation=(Shift(pixels=1), Crop()))),
        ({"augmentation.0": Flip()}, dataclasses.replace(FULL, augmentation=(Flip(), Flip()))),
        ({"augmentation": []}, dataclasses.replace(FULL, augmentation=())),
        ({"model": "cnn"}, dataclasses.replace(FULL, model=CNN())),
        ({"model": CNN(hidden=8)}, dataclasses.replace(FULL, model=CNN(hidden=8))),
        ({"model": {"name": "cnn", "hidden": 8}}, dataclasses.replace(FULL, model=CNN(hidden=8))),
        ({"epochs": None, "steps": 7}, dataclasses.replace(FULL, epochs=None, steps=7)),
        (
            {"schedule": "cosine", "regulariser": "cross_entropy", "seed": 4},
            dataclasses.replace(FULL, schedule=Cosine(), regulariser=CrossEntropy(), seed=4),
        ),
    ],
)
def test_replace_changes_what_it_names_and_nothing_else(changes, expected):
    before = FULL.to_dict()
    assert FULL.replace(changes) == expected
    assert FULL.to_dict() == before


@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        (
            "regulariser.alhpa",
            "regulariser.alhpa",
            "no such field of 'label_smoothing' (did you mean 'alpha'?); ",
        ),
        ("bach", "bach", "no such field of a recipe (did you mean 'batch'?); allowed: data, model, "),
        ("regularizer", "regularizer", "no such field of a recipe (did you mean 'regulariser'?); allowed: "),
        ("regularizer.alpha", "regularizer", "the recipe has no such field (did you mean 'regulariser'?)"),
        ("nothing.at.all", "nothing", "the recipe has no such field"),
        ("model.hiden.0", "model.hiden", "the recipe has no such field"),
        ("model.hidden.1", "model.hidden.1", "the recipe has no such field"),
        ("model.hidden.first", "model.hidden.first", "the recipe has no such field"),
        ("model.hidden.0.more", "model.hidden.0.more", "the recipe has no such field"),
        ("augmentation.2", "augmentation.2", "the recipe has no such field"),
        ("augmentation.2.pixels", "augmentation.2", "the recipe has no such field"),
        ("augmentation.first.pixels", "augmentation.first", "the recipe has no such field"),
        (
            "augmentation.0.pixel",
            "augmentation.0.pixel",
            "no such field of 'shift' (did you mean 'pixels'?); ",
        ),
        ("seed.more", "seed.more", "the recipe has no such field"),
        ("regulariser.teacher.seed", "regulariser.teacher", "the recipe has no such field"),
    ],
)
def test_replace_refuses_a_path_that_leads_nowhere(path, field, message):
    error = refusal(FULL.replace, {path: 1})
    assert error.field == field
    assert error.message.startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"regulariser.alpha": 2},
            "regulariser.alpha: 2.0 is out of range: must be at least 0 and at most 1",
        ),
        ({"model.hidden.0": True}, "model.hidden.0: True is not a whole number"),
        ({"model": "rnn"}, f"model: 'rnn' is not known (did you mean 'cnn'?); allowed: {MODELS}"),
        ({"model": SGD()}, f"model: SGD() is not one of {MODELS}"),
        ({"precision.x": 3}, "precision.x: the recipe has no such field"),
        ({"data.name.x": 3}, "data.name.x: the recipe has no such field"),
        ({"model.hidden.-1": 3}, "model.hidden.-1: the recipe has no such field"),
        ({"epochs": 2, "steps": 3}, "epochs: give either epochs or steps; both are given"),
        ({"epochs": None}, "epochs: give either epochs or steps; neither is given"),
        (
            {"precision": "fp16"},
            "precision: 'fp16' is not known (did you mean 'bf16'?); allowed: fp32, tf32, bf16",
        ),
    ],
)
def test_replace_validates_the_new_value(changes, message):
    assert str(refusal(FULL.replace, changes)) == message


def test_a_yaml_recipe_is_the_python_recipe():
    text = """
    data: {name: cifar10, validation: 5_000, standardise: channel}
    model: {name: cnn, channels: [16, 32]}
    regulariser: {name: label_smoothing, alpha: 1e-1}
    optimiser: {name: sgd, lr: 5e-2, momentum: .9, weight_decay: 5E-4}
    schedule: cosine
    augmentation: [{name: crop, padding: 4}, flip]
    epochs: 2e2
    """
    assert Recipe.from_yaml(text) == Recipe(
        data=CIFAR10(validation=5000, standardise="channel"),
        model=CNN(channels=(16, 32)),
        regulariser=LabelSmoothing(alpha=0.1),
        optimiser=SGD(lr=0.05, momentum=0.9, weight_decay=0.0005),
        schedule=Cosine(),
        augmentation=(Crop(padding=4), Flip()),
        epochs=200,
    )


def test_a_recipe_file_is_loaded_and_its_errors_name_the_file(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text("data: digits\nmodel: mlp\nepochs: 1\n")
    assert Recipe.load(path) == Recipe.load(str(path)) == Recipe(data=Digits(), model=MLP(), epochs=1)
    path.write_text("data: digits\nmodel: {name: mlp, hiden: [3]}\nepochs: 1\n")
    assert str(refusal(Recipe.load, path)) == (
        f"{path}: model.hiden: no such field of 'mlp' (did you mean 'hidden'?); "
        "allowed: hidden, dropout, init_std"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine: None is not a mapping of fields"),
        ("# nothing but a comment\n", "mine: None is not a mapping of fields"),
        ("- data: digits", "mine: [{'data': 'digits'}] is not a mapping of fields"),
        ("digits", "mine: 'digits' is not a mapping of fields"),
        ("data: digits\nmodel:\nepochs: 1", f"mine: model: None is not one of {MODELS}"),
        ("{data: digits, model: mlp, epochs: yes}", "mine: epochs: 'yes' is not a whole number"),
        ("{data: digits, model: mlp, epochs: '5'}", "mine: epochs: '5' is not a whole number"),
        ("{data: digits, model: mlp, epochs: .inf}", "mine: epochs: inf is not a whole number"),
        (
            "{data: digits, model: {name: mlp, dropout: .nan}, epochs: 1}",
            "mine: model.dropout: nan is not a number",
        ),
        (
            "{data: mnits, model: mlp, epochs: 1}",
            "mine: data: 'mnits' is not known (did you mean 'mnist'?); allowed: digits, mnist, fashion-mnist, "
            "emnist, cifar10, cifar100, cub200, tiny-imagenet, imagenet, image-folder, arrays, multi30k, tatoeba, "
            "iwslt14, iwslt17, wmt14, parallel-text",
        ),
    ],
)
def test_the_whole_message_for_a_recipe_in_yaml_that_cannot_be(text, message):
    assert str(refusal(Recipe.from_yaml, text, "mine")) == message
