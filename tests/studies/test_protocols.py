"""The papers' base recipes: as the papers say, and with the names that finished runs have."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from softtargets.recipes import SGD, Recipe
from softtargets.studies import STUDIES, protocols
from softtargets.studies.labo.protocol import training
from softtargets.studies.protocols import (
    ALEXNET_CIFAR10,
    ALEXNET_CIFAR10_REPLICATED,
    FCN_STUDENT,
    FCN_TEACHER,
    INCEPTION_V4_IMAGENET,
    RESNET56_CIFAR10,
    RESNET56_CIFAR10_ALL,
    RESNET56_CIFAR100,
    held_out,
    shrunk,
)
from softtargets.studies.study import Study


def _steps(recipe: Recipe, epochs: int) -> int:
    trained = recipe.data.training_examples - recipe.data.validation
    return epochs * math.ceil(trained / recipe.batch)


# Printed iterations: 64k with drops at 32k and 48k (appendix A.2), 390k with drops every 130k (A.1).
@pytest.mark.parametrize(
    ("recipe", "printed"),
    [
        (RESNET56_CIFAR10, (32_000, 48_000, 64_000)),
        (RESNET56_CIFAR100, (32_000, 48_000, 64_000)),
        (ALEXNET_CIFAR10, (130_000, 260_000, 390_000)),
    ],
)
def test_lengths_are_the_papers_to_half_a_per_cent(recipe: Recipe, printed: tuple[int, ...]) -> None:
    places = (*recipe.schedule.milestones, recipe.epochs)
    assert [_steps(recipe, place) for place in places] == [
        pytest.approx(steps, rel=5e-3) for steps in printed
    ]


def test_held_out_images_are_ten_thousand_where_the_paper_holds_out() -> None:
    sizes = {
        name: recipe.data.validation
        for name, recipe in vars(protocols).items()
        if isinstance(recipe, Recipe) and "CIFAR" in name
    }
    assert sizes == {
        "RESNET56_CIFAR10_ALL": 0,
        "RESNET56_CIFAR10": 10_000,
        "RESNET56_CIFAR100": 10_000,
        "ALEXNET_CIFAR10": 10_000,
        "ALEXNET_CIFAR10_REPLICATED": 0,
    }
    assert held_out(RESNET56_CIFAR10_ALL) == RESNET56_CIFAR10


def test_alexnet_decays_two_dense_layers_by_the_square_and_the_replication_by_the_norm() -> None:
    theirs, other = ALEXNET_CIFAR10.optimiser, ALEXNET_CIFAR10_REPLICATED.optimiser
    assert theirs == SGD(
        lr=0.1, weight_decay=0.04, decay_on=("local3.weight", "local4.weight"), decay_form="loss"
    )
    assert other.decay_form == "norm"
    assert other.decay_on == theirs.decay_on
    assert ALEXNET_CIFAR10.multiplier == 3
    assert ALEXNET_CIFAR10.clip is None


def test_names_of_runs_stay() -> None:
    assert RESNET56_CIFAR10_ALL.id == "091e0a3fa9394558"
    assert RESNET56_CIFAR10_ALL.replace({"measure_epochs": 1}).id == "302ca143a2a7203f"
    assert ALEXNET_CIFAR10.id == "a9c1b32a51bb72ae"
    # Of these there are committed runs.
    assert (FCN_TEACHER.id, FCN_STUDENT.id) == ("51f892b8395e3b32", "ad9b5be4a7ead5c4")


def test_courses_of_convolutional_networks_have_40_points_at_least_with_several_at_every_rate() -> None:
    for recipe in (RESNET56_CIFAR10, RESNET56_CIFAR100, ALEXNET_CIFAR10, training("cifar100", "resnet18")):
        every = recipe.measure_epochs
        measured = {*range(every, recipe.epochs, every), recipe.epochs}
        assert 40 <= len(measured) <= 130
        for begin, end in pairwise((0, *recipe.schedule.milestones, recipe.epochs)):
            assert len(measured & set(range(begin + 1, end + 1))) >= 8


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_what_is_found_in_the_course_of_a_training_is_looked_for_after_every_epoch(study: Study) -> None:
    """The epochs until a goal, and the best of all epochs, would be others if only some were measured."""
    reads = study.name == "muller-text" or study.name.startswith("chen-")
    for size in study.sizes or ("",):
        recipes = [
            each.recipe
            for each in study.trials(study.settings(seeds=1, changes={"size": size} if size else {}))
            if each.labels.get("network") != "cifar100"  # of muller-text, which looks at its end
        ]
        small = size == "small"
        assert all(recipe.measure_epochs == 1 for recipe in recipes if small or reads)


def test_inception_is_what_the_paper_says_of_it() -> None:
    assert INCEPTION_V4_IMAGENET.model.name == "inception_v4"
    assert INCEPTION_V4_IMAGENET.optimiser.weight_decay == 8e-5
    assert INCEPTION_V4_IMAGENET.average == 0.9999


def test_a_shrunk_recipe_keeps_the_shape_of_its_training() -> None:
    small = shrunk(ALEXNET_CIFAR10, images=3000, epochs=6)
    assert (small.data.limit, small.data.validation, small.epochs) == (3000, 1500, 6)
    assert small.schedule.milestones == (2, 4)
    assert small.precision == "fp32"
    assert small.measure_epochs == 1
    assert small.optimiser == ALEXNET_CIFAR10.optimiser
    # Drops that fall together in a very short training are one.
    assert shrunk(ALEXNET_CIFAR10, images=3000, epochs=1).schedule.milestones == (1,)
    # What has no validation split gets none, and a schedule without steps stays.
    digits = shrunk(FCN_TEACHER, images=500, epochs=2, model__hidden=(32,))
    assert (digits.data.validation, digits.schedule, digits.model.hidden) == (0, FCN_TEACHER.schedule, (32,))
