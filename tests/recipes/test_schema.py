from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
import types
from typing import Annotated, Literal, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softtargets.exceptions import RecipeError
from softtargets.recipes import (
    BLEU,
    CIFAR10,
    CIFAR100,
    CNN,
    EMNIST,
    LABO,
    MLP,
    SGD,
    Adam,
    AdamW,
    Affine,
    Arrays,
    Augmentation,
    ClassConditional,
    Contrast,
    Crop,
    Dataset,
    Digits,
    Distillation,
    ImageFolder,
    LabelSmoothing,
    Model,
    Optimiser,
    Own,
    ParallelText,
    PreActResNet,
    Recipe,
    ResizedCrop,
    ResNet,
    Schedule,
    Step,
    Timm,
    Transformer,
    build,
    describe,
    kinds,
)
from softtargets.recipes.probes import Information
from softtargets.recipes.schema import (
    Count,
    Index,
    NonNegative,
    Positive,
    Probability,
    ProperFraction,
    Range,
    field_types,
)

from .making import FIELDS, NAMES, PARTS, options_for, parts, plain_recipe, recipe_with, values

MODELS = ", ".join(NAMES[Model])


def named(item):
    return item if isinstance(item, str) else item.__name__


def refusal(kind, **options):
    with pytest.raises(RecipeError) as caught:
        kind(**options)
    return caught.value


def innermost(hint):
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return innermost(arguments[0])
    if origin in (Union, types.UnionType):
        return innermost(next(arm for arm in arguments if arm is not type(None)))
    return hint


ALL_FIELDS = [*FIELDS, *((Recipe, field.name) for field in dataclasses.fields(Recipe))]


def fields_ending_in(kind):
    return [(part, name) for part, name in ALL_FIELDS if innermost(field_types(part)[name]) is kind]


def fields_of_origin(origin):
    return [(part, name) for part, name in ALL_FIELDS if get_origin(field_types(part)[name]) is origin]


def options_with(part, name, value):
    given = {"data": Digits(), "model": MLP(), "epochs": 1} if part is Recipe else options_for(part)
    return given | {name: value}


@pytest.mark.parametrize("slot", NAMES, ids=named)
def test_every_slot_has_exactly_the_named_kinds(slot):
    assert kinds(slot) == NAMES[slot]


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_plain_values_build_the_part_they_came_from(slot, part, data):
    original = data.draw(parts(part))
    tree = original.to_dict()
    assert list(tree) == ["name", *(field.name for field in dataclasses.fields(part))]
    assert build(slot, json.loads(json.dumps(tree, allow_nan=False))) == original
    assert build(slot, original.canonical()) == original


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_canonical_form_has_exactly_the_fields_that_differ_from_the_defaults(slot, part, data):
    original, standard = data.draw(parts(part)), part(**options_for(part))
    expected = {"name"} | {
        field.name
        for field in dataclasses.fields(part)
        if field.name in options_for(part) or getattr(original, field.name) != getattr(standard, field.name)
    }
    assert set(original.canonical()) == expected


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
def test_a_part_with_all_defaults_is_its_bare_name(slot, part):
    if part is Distillation:
        assert part(**options_for(part)).canonical() == {
            "name": "distillation",
            "teacher": {
                "data": {"name": "digits"},
                "model": {"name": "mlp", "hidden": [64]},
                "epochs": 5,
            },
        }
        return
    assert part(**options_for(part)).canonical() == {"name": part.name, **options_for(part)}
    if part not in (Timm, Own, Arrays, ClassConditional, ParallelText, ImageFolder):
        assert build(slot, part.name) == part()


# Fields that make no sense with every value of the others.
DEPENDENT = {
    (Step, "milestones"),
    (SGD, "nesterov"),
    (AdamW, "decay_form"),
    (Own, "net"),
    (Own, "options"),
    (SGD, "momentum"),
    (SGD, "dampening"),
    (Contrast, "low"),
    (Contrast, "high"),
    (Affine, "scale"),
    (ResizedCrop, "scale"),
    (ResizedCrop, "ratio"),
    (ResNet, "depth"),
    (ImageFolder, "folder"),
    (PreActResNet, "depth"),
    (PreActResNet, "stem"),
    (Transformer, "width"),
    (Transformer, "heads"),
    (Adam, "decoupled"),
    (Adam, "decay_form"),
    (Information, "classes"),
    (ClassConditional, "matrix"),
    (LabelSmoothing, "matrix"),
    (LabelSmoothing, "spread"),
    (LABO, "warmup"),
    (LABO, "warmup_alpha"),
    (LabelSmoothing, "prior"),
    *((part, side) for part in NAMES[Dataset].values() for side in ("source", "target")),
}


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_changing_any_field_of_any_part_changes_the_recipe_id(slot, part, data):
    original = data.draw(parts(part))
    before = recipe_with(slot, original).id
    for name, hint in field_types(part).items():
        given_now = getattr(original, name)
        value = data.draw(values(hint).filter(lambda drawn, old=given_now: drawn != old))
        try:
            changed = build(slot, original.to_dict() | {name: value})
        except RecipeError:
            assert (part, name) in DEPENDENT
            continue
        assert changed != original
        assert recipe_with(slot, changed).id != before


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
def test_parts_are_frozen(slot, part):
    original = part(**options_for(part))
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(original, field.name, getattr(original, field.name))
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        original.something_new = 1


@pytest.mark.parametrize(("slot", "part"), PARTS, ids=named)
def test_equal_parts_hash_alike_and_take_keywords_only(slot, part):
    assert hash(part(**options_for(part))) == hash(part(**options_for(part)))
    with pytest.raises(TypeError):
        part(1)


def test_the_list_a_part_was_made_from_can_change_without_changing_the_part():
    widths = [64, 32]
    model = MLP(hidden=widths)
    widths.append(16)
    model.to_dict()["hidden"].append(8)
    model.canonical()["hidden"].append(4)
    assert model.hidden == (64, 32)


def test_minus_zero_is_zero():
    assert math.copysign(1, SGD(momentum=-0.0).momentum) == 1
    assert SGD(momentum=-0.0).canonical() == {"name": "sgd"}


@pytest.mark.parametrize(("part", "name"), fields_ending_in(float), ids=named)
def test_number_fields_refuse_what_is_no_number(part, name):
    for value in (True, False, "0.1", math.nan, math.inf, -math.inf, [0.1], 1j):
        error = refusal(part, **options_with(part, name, value))
        assert (error.field, str(error)) == (name, f"{name}: {value!r} is not a number")


@pytest.mark.parametrize(("part", "name"), fields_ending_in(float), ids=named)
def test_only_number_fields_that_say_so_may_be_nothing(part, name):
    if (part.name, name) in {
        ("labo", "alpha"),
        ("mlp", "init_std"),
        ("labo", "warmup_alpha"),
        ("online_label_smoothing", "freeze"),
        ("", "clip"),
        ("", "average"),
    } or name == "ratio":
        assert getattr(part(**options_with(part, name, None)), name) is None
    else:
        assert str(refusal(part, **options_with(part, name, None))) == f"{name}: None is not a number"


@pytest.mark.parametrize(("part", "name"), fields_ending_in(int), ids=named)
def test_whole_number_fields_refuse_what_is_no_whole_number(part, name):
    for value in (True, False, "3", 2.5, math.nan, math.inf, -math.inf, [3], 3j):
        error = refusal(part, **options_with(part, name, value))
        assert (error.field, str(error)) == (name, f"{name}: {value!r} is not a whole number")


@pytest.mark.parametrize(("part", "name"), fields_ending_in(int), ids=named)
def test_only_fields_that_say_so_may_be_nothing(part, name):
    if (
        (part is Recipe and name in ("epochs", "steps", "measure_every", "average_last"))
        or (part, name) == (BLEU, "sentences")
        or name == "limit"
        or (part, name) in ((Crop, "size"), (ResizedCrop, "size"))
    ):
        length = {"steps": 1} if name == "epochs" else {}
        assert getattr(part(**options_with(part, name, None) | length), name) is None
    else:
        assert str(refusal(part, **options_with(part, name, None))) == f"{name}: None is not a whole number"


@pytest.mark.parametrize(("part", "name"), fields_ending_in(bool), ids=named)
def test_true_or_false_fields_refuse_anything_else(part, name):
    for value in (1, 0, "true", "no", None, [True]):
        error = refusal(part, **options_with(part, name, value))
        assert str(error) == f"{name}: {value!r} is not true or false"


@pytest.mark.parametrize(("part", "name"), fields_of_origin(Literal), ids=named)
def test_choices_refuse_other_words_and_name_all_that_are_allowed(part, name):
    allowed = get_args(field_types(part)[name])
    for value in ("zzzzzz", 1, None, True, [allowed[0]], 0.5):
        message = str(refusal(part, **options_with(part, name, value)))
        assert message.startswith(f"{name}: {value!r} is not known")
        assert message.endswith(f"; allowed: {', '.join(allowed)}")


@pytest.mark.parametrize(
    ("part", "name", "misspelt", "meant"),
    [
        (EMNIST, "part", "balenced", "balanced"),
        (CIFAR10, "labels", "agregate", "aggregate"),
        (CIFAR100, "labels", "noise", "noisy"),
        (Digits, "standardise", "chanel", "channel"),
        (Step, "unit", "epochs", "epoch"),
        (LabelSmoothing, "spread", "other", "others"),
        (Recipe, "precision", "FP23", "fp32"),
    ],
)
def test_a_misspelt_choice_is_refused_with_the_nearest_one(part, name, misspelt, meant):
    message = str(refusal(part, **options_with(part, name, misspelt)))
    assert message.startswith(f"{name}: {misspelt!r} is not known (did you mean '{meant}'?); allowed: ")


LISTS = fields_of_origin(tuple)
MAPPINGS = [(SGD, "rates"), (Adam, "rates"), (AdamW, "rates")]


@pytest.mark.parametrize(
    ("part", "name"), [field for field in LISTS if field not in [*MAPPINGS, (Own, "options")]], ids=named
)
def test_list_fields_refuse_what_is_no_list(part, name):
    for value in ("64", 64, None, {"a": 1}, {1, 2}, True):
        message = str(refusal(part, **options_with(part, name, value)))
        assert message.startswith(f"{name}: {value!r} is not a list, each item ")


@pytest.mark.parametrize(("part", "name"), MAPPINGS, ids=named)
def test_mappings_are_kept_as_pairs_in_the_order_they_were_written_in(part, name):
    mapping = {"head.bias": 2, "head.*": 0.5, "*": 0}
    made = part(**{name: mapping})
    pairs = (("head.bias", 2.0), ("head.*", 0.5), ("*", 0.0))
    assert getattr(made, name) == pairs
    mapping["more"] = 1
    assert getattr(made, name) == pairs
    assert made.canonical() == {"name": part.name, name: [["head.bias", 2.0], ["head.*", 0.5], ["*", 0.0]]}
    for written in (pairs, list(pairs), [list(pair) for pair in pairs], types.MappingProxyType(dict(pairs))):
        assert part(**{name: written}) == made
        assert hash(part(**{name: written})) == hash(made)
    # The first match counts, so the order is part of the meaning, also after a dump that sorts its keys.
    assert part(**{name: dict(reversed(pairs))}) != made
    assert build(Optimiser, json.loads(json.dumps(made.to_dict(), sort_keys=True))) == made
    assert part(**{name: {}}).canonical() == part(**{name: []}).canonical() == {"name": part.name}


@pytest.mark.parametrize(("part", "name"), MAPPINGS, ids=named)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("head", "rates: 'head' is not a mapping from text to a number of at least 0"),
        (3, "rates: 3 is not a mapping from text to a number of at least 0"),
        (None, "rates: None is not a mapping from text to a number of at least 0"),
        ({"head"}, "rates: {'head'} is not a mapping from text to a number of at least 0"),
        ([3], "rates.0: 3 is not a list of text and a number of at least 0"),
        (["ab"], "rates.0: 'ab' is not a list of text and a number of at least 0"),
        ([["a", 1], ["b"]], "rates.1: ['b'] has 1 items, not 2"),
        ([["a", -1]], "rates.0.1: -1.0 is out of range: must be at least 0"),
        ({"a": 1, 2: 3}, "rates.2: 2 is not text"),
        ({"a": "b"}, "rates.a: 'b' is not a number"),
        ({"head.*": True}, "rates.head.*: True is not a number"),
        ({"head.*": -1}, "rates.head.*: -1.0 is out of range: must be at least 0"),
        ({"*": math.nan}, "rates.*: nan is not a number"),
    ],
)
def test_mappings_refuse_what_is_none(part, name, value, message):
    assert str(refusal(part, **{name: value})) == message


@pytest.mark.parametrize(
    ("part", "options", "message"),
    [
        (LabelSmoothing, {"alpha": 1.5}, "alpha: 1.5 is out of range: must be at least 0 and at most 1"),
        (LabelSmoothing, {"alpha": -1}, "alpha: -1.0 is out of range: must be at least 0 and at most 1"),
        (MLP, {"dropout": 1}, "dropout: 1.0 is out of range: must be at least 0 and below 1"),
        (SGD, {"lr": 0}, "lr: 0.0 is out of range: must be above 0"),
        (SGD, {"weight_decay": -1e-9}, "weight_decay: -1e-09 is out of range: must be at least 0"),
        (CNN, {"hidden": 0}, "hidden: 0 is out of range: must be at least 1 and at most 1e+12"),
        (Digits, {"validation": -1}, "validation: -1 is out of range: must be at least 0"),
        (Digits, {"limit": 0}, "limit: 0 is out of range: must be at least 1"),
        (MLP, {"hidden": [64, 0]}, "hidden.1: 0 is out of range: must be at least 1 and at most 1e+12"),
        (MLP, {"hidden": [64, "32"]}, "hidden.1: '32' is not a whole number"),
        (CNN, {"channels": [8]}, "channels: [8] has 1 items, not 2"),
        (CNN, {"channels": [8, 8, 8]}, "channels: [8, 8, 8] has 3 items, not 2"),
        (Adam, {"betas": (0.9,)}, "betas: [0.9] has 1 items, not 2"),
        (Adam, {"betas": (0.9, 1.0)}, "betas.1: 1.0 is out of range: must be at least 0 and below 1"),
    ],
)
def test_the_whole_message_for_a_value_out_of_range(part, options, message):
    assert str(refusal(part, **options)) == message


@pytest.mark.parametrize(
    ("hint", "inside", "outside"),
    [
        (Probability, [0, 0.5, 1], [-1e-12, 1 + 1e-12]),
        (ProperFraction, [0, 1 - 1e-12], [-1e-12, 1]),
        (Positive, [1e-300, 1e300], [0, -1]),
        (NonNegative, [0, 1e300], [-1e-300]),
        (Count, [1, 10**9], [0, -1]),
        (Index, [0, 10**9], [-1]),
    ],
)
def test_ranges_hold_their_ends_as_stated(hint, inside, outside):
    allowed = get_args(hint)[1]
    assert all(value in allowed for value in inside)
    assert not any(value in allowed for value in outside)


def test_ranges_in_words():
    assert str(Range(0, 1)) == "at least 0 and at most 1"
    assert str(Range(0, 1, open_low=True, open_high=True)) == "above 0 and below 1"
    assert str(Range(high=2.5)) == "at most 2.5"
    assert str(Range()) == ""


def test_a_misspelt_field_is_refused_with_the_nearest_one():
    with pytest.raises(RecipeError) as caught:
        build(Optimiser, {"name": "sgd", "momentm": 0.9})
    assert str(caught.value) == (
        "momentm: no such field of 'sgd' (did you mean 'momentum'?); "
        "allowed: lr, rates, weight_decay, decay_on, decay_form, momentum, dampening, nesterov"
    )
    assert caught.value.field == "momentm"


def test_a_field_like_no_other_is_refused_without_a_suggestion():
    with pytest.raises(RecipeError) as caught:
        build(Model, {"name": "mlp", "zzz": 1})
    assert str(caught.value) == "zzz: no such field of 'mlp'; allowed: hidden, dropout, init_std"


def test_a_field_of_another_part_is_refused():
    with pytest.raises(RecipeError, match="channels: no such field of 'mlp'"):
        build(Model, {"name": "mlp", "channels": [8, 8]})


@pytest.mark.parametrize(
    ("slot", "value", "message"),
    [
        (Model, "mpl", f"'mpl' is not known (did you mean 'mlp'?); allowed: {MODELS}"),
        (Model, {"name": "CN"}, f"'CN' is not known (did you mean 'cnn'?); allowed: {MODELS}"),
        (Schedule, "zzzz", "'zzzz' is not known; allowed: constant, step, linear, cosine, inverse_sqrt"),
        (Model, {"hidden": [64]}, f"has no 'name'; allowed: {MODELS}"),
        (Model, {}, f"has no 'name'; allowed: {MODELS}"),
        (Model, 3, f"3 is not one of {MODELS}"),
        (Model, None, f"None is not one of {MODELS}"),
        (Model, ["mlp"], f"['mlp'] is not one of {MODELS}"),
        (Recipe, [], "[] is not a mapping of fields"),
        (Recipe, "digits", "'digits' is not a mapping of fields"),
        (Recipe, None, "None is not a mapping of fields"),
    ],
)
def test_the_whole_message_for_a_part_that_cannot_be_built(slot, value, message):
    with pytest.raises(RecipeError) as caught:
        build(slot, value)
    assert str(caught.value) == message


def test_names_are_taken_as_written():
    for name in ("MLP", "Mlp", " mlp", "mlp "):
        with pytest.raises(RecipeError, match="did you mean 'mlp'"):
            build(Model, name)


def test_a_part_of_another_slot_is_refused():
    with pytest.raises(RecipeError, match=r"model: .* is not one of mlp, cnn"):
        plain_recipe(model=SGD())


def test_an_instance_is_taken_as_it_is():
    model = MLP(hidden=[3])
    assert build(Model, model) is model


def test_a_required_field_that_is_missing_is_named():
    with pytest.raises(RecipeError) as caught:
        build(Recipe, {"data": "digits", "epochs": 1})
    assert str(caught.value) == "model: is required"
    with pytest.raises(RecipeError) as caught:
        plain_recipe(regulariser="distillation")
    assert str(caught.value) == "regulariser.teacher: is required"


def test_errors_deep_inside_name_the_whole_path():
    teacher = {"data": "digits", "model": {"name": "mlp", "hidden": [8, -8]}, "epochs": 1}
    with pytest.raises(RecipeError) as caught:
        plain_recipe(regulariser={"name": "distillation", "teacher": teacher})
    assert caught.value.field == "regulariser.teacher.model.hidden.1"
    with pytest.raises(RecipeError) as caught:
        plain_recipe(augmentation=["flip", {"name": "shift", "pixel": 1}])
    assert str(caught.value).startswith(
        "augmentation.1.pixel: no such field of 'shift' (did you mean 'pixels'?)"
    )


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (
            Step,
            {
                "warmup": "a whole number of at least 0",
                "unit": "one of epoch, step",
                "milestones": "a list, each item a whole number of at least 1",
                "factor": "a number above 0",
            },
        ),
        (CNN, {"dropout": "a number of at least 0 and below 1"}),
        (Digits, {"limit": "a whole number of at least 1 or null"}),
        (
            SGD,
            {
                "nesterov": "true or false",
                "rates": "a mapping from text to a number of at least 0",
                "decay_on": "a list, each item text",
            },
        ),
        (Adam, {"betas": "a list, each item a number of at least 0 and below 1"}),
        (Distillation, {"teacher": "a recipe"}),
        (
            Recipe,
            {
                "model": f"one of {MODELS}",
                "augmentation": "a list, each item one of shift, flip, crop, resized_crop, colour, brightness, "
                "contrast, affine, rotation",
            },
        ),
    ],
)
def test_fields_in_words(part, words):
    found = {name: describe(hint) for name, hint in field_types(part).items()}
    assert {name: found[name] for name in words} == words
    assert set(found) == {field.name for field in dataclasses.fields(part)}


def test_every_field_can_be_described():
    for part in [*(part for _, part in PARTS), Recipe]:
        assert all(describe(hint) for hint in field_types(part).values())
    assert describe(str) == "text"


def test_the_slot_itself_is_not_a_kind():
    assert "" not in kinds(Augmentation)
    assert all(part.name == name for named in NAMES.values() for name, part in named.items())


def test_recipes_load_without_torch():
    code = (
        "import sys, softtargets.recipes; print([m for m in ('torch', 'numpy', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
