from __future__ import annotations

import inspect

import pytest

from softtargets.exceptions import RecipeError
from softtargets.losses import REGULARISERS
from softtargets.recipes import (
    CrossEntropy,
    Distillation,
    ForwardCorrection,
    LabelSmoothing,
    Pair,
    Regulariser,
    build,
)

from .making import NAMES, options_for, plain_recipe

# What a loss takes and a recipe does not say: the shape of the call, the data, and what is no plain number.
NOT_IN_RECIPES = {
    "ignore_index",
    "weight",
    "reduction",
    "inplace",
    "classes",
    "prior",
    "include_kl",
}
# A forward correction takes the matrix of the recipe's noise; smoothed logits have the uniform one in recipes.
ONLY_THERE = {"forward_correction": {"matrix"}, "logit_smoothing": {"matrix"}}
EYE = ((1.0, 0.0), (0.0, 1.0))


def test_every_regulariser_a_recipe_names_is_built_in_the_losses_room():
    assert set(REGULARISERS) == set(NAMES[Regulariser])


@pytest.mark.parametrize("name", NAMES[Regulariser])
def test_the_loss_takes_exactly_the_fields_with_the_same_defaults(name):
    kind = NAMES[Regulariser][name]
    parameters = inspect.signature(REGULARISERS[name]).parameters.values()
    left_out = NOT_IN_RECIPES | ONLY_THERE.get(name, set())
    taken = {each.name: each.default for each in parameters if each.name not in left_out}
    # Who teaches, and about which images, and how often each class is a label, the training loop knows.
    asked = ("teacher", "view", "prior")
    expected = {name: value for name, value in vars(kind(**options_for(kind))).items() if name not in asked}
    assert taken == expected


def test_cross_entropy_needs_no_options():
    assert vars(CrossEntropy()) == {}


def test_options_that_came_later_leave_the_identity_of_older_recipes_alone():
    student = plain_recipe(regulariser=Distillation(teacher=plain_recipe(), temperature=4.0))
    assert set(student.canonical()["regulariser"]) == {"name", "teacher", "temperature"}
    assert plain_recipe(regulariser=LabelSmoothing(alpha=0.2)).canonical()["regulariser"] == {
        "name": "label_smoothing",
        "alpha": 0.2,
    }


def test_a_matrix_is_part_of_the_identity_and_survives_being_written():
    smoothed = plain_recipe(regulariser=LabelSmoothing(alpha=1, matrix=[[0.75, 0.25], [0.5, 0.5]]))
    assert smoothed.canonical()["regulariser"] == {
        "name": "label_smoothing",
        "alpha": 1.0,
        "matrix": [[0.75, 0.25], [0.5, 0.5]],
    }
    assert smoothed.regulariser.matrix == ((0.75, 0.25), (0.5, 0.5))
    assert type(smoothed)(**smoothed.to_dict()) == smoothed
    other = smoothed.replace({"regulariser.matrix": [[0.75, 0.25], [0.25, 0.75]]})
    assert len({smoothed.id, other.id, smoothed.replace({"regulariser.matrix": None}).id}) == 3


@pytest.mark.parametrize(
    ("matrix", "spread", "message"),
    [
        ([], "all", "matrix: needs a row for each of at least two classes, not 0"),
        ([[1.0]], "all", "matrix: needs a row for each of at least two classes, not 1"),
        ([[0.5, 0.5], [1.0]], "all", "matrix.1: has 1 numbers, not one for each of 2 rows"),
        ([[0.5, 0.5], [0.5, 0.6]], "all", "matrix.1: adds up to 1.1, not to 1; divide it by its sum"),
        ([[0.5, 0.5], [0.5, 0.4998]], "all", "matrix.1: adds up to 0.9998, not to 1; divide it by its sum"),
        (
            [[1.5, -0.5], [0.5, 0.5]],
            "all",
            "matrix.0.0: 1.5 is out of range: must be at least 0 and at most 1",
        ),
        (
            [[0.5, 0.5], [0.0, 1.0]],
            "others",
            "matrix.1: has no mass for other classes, which spread: others needs; give it some, or use spread: all",
        ),
        (
            0.3,
            "all",
            "matrix: 0.3 is not a list, each item a list, each item a number of at least 0 and at most 1",
        ),
    ],
)
def test_what_is_no_matrix_of_targets_is_refused(matrix, spread, message):
    with pytest.raises(RecipeError) as caught:
        LabelSmoothing(matrix=matrix, spread=spread)
    assert str(caught.value) == message


def test_a_matrix_may_be_the_identity_unless_others_are_wanted():
    assert LabelSmoothing(matrix=EYE).matrix == EYE
    assert LabelSmoothing(matrix=[[0.0, 1.0], [1.0, 0.0]], spread="others").spread == "others"


def test_forward_correction_needs_noise_that_the_recipe_says():
    with pytest.raises(RecipeError) as caught:
        plain_recipe(regulariser="forward_correction")
    assert str(caught.value) == (
        "regulariser: forward_correction corrects the label noise of the recipe, but the recipe has none; "
        "give noise: symmetric or pair, or another regulariser"
    )
    assert plain_recipe(regulariser="forward_correction", noise=Pair()).regulariser == ForwardCorrection()


def test_forward_correction_needs_noise_with_one_matrix():
    with pytest.raises(
        RecipeError, match="instance noise has a different one for each image; give noise: symmetric"
    ):
        plain_recipe(regulariser="forward_correction", noise="instance")


def test_a_teacher_is_a_whole_recipe():
    teacher = plain_recipe(seed=9)
    by_instance = Distillation(teacher=teacher)
    by_values = build(Regulariser, {"name": "distillation", "teacher": teacher.to_dict()})
    assert by_instance == by_values
    assert by_values.to_dict()["teacher"] == teacher.to_dict()


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        ("mnist", "teacher: 'mnist' is not a mapping of fields"),
        (None, "teacher: None is not a mapping of fields"),
        ({"data": "digits"}, "teacher.model: is required"),
        (
            {"data": "digits", "model": "mlp", "epochs": 1, "lr": 0.1},
            "teacher.lr: no such field of a recipe; allowed: data, model, regulariser, optimiser, schedule, "
            "epochs, steps, batch, augmentation, noise, seed, precision, multiplier, clip, average, measure_every, "
            "probes, average_last, best_by, measure_epochs",
        ),
        ({"data": "digits", "model": "mlp"}, "teacher.epochs: give either epochs or steps; neither is given"),
    ],
)
def test_what_is_no_recipe_is_no_teacher(teacher, message):
    with pytest.raises(RecipeError) as caught:
        Distillation(teacher=teacher)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature: 0.0 is out of range: must be above 0"),
        ({"beta": 1.1}, "beta: 1.1 is out of range: must be at least 0 and at most 1"),
        ({"student_temperature": 1}, "student_temperature: 1 is not true or false"),
    ],
)
def test_distillation_refuses_impossible_options(options, message):
    with pytest.raises(RecipeError) as caught:
        Distillation(teacher=plain_recipe(), **options)
    assert str(caught.value) == message
