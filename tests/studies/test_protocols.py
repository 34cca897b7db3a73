"""The papers' base recipes: as the papers say, and with the names that finished runs have."""

from __future__ import annotations

import math

import pytest

from softtargets.recipes import SGD, Recipe
from softtargets.studies import protocols
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


def test_names_of_runs_that_are_committed_stay() -> None:
    assert RESNET56_CIFAR10_ALL.id == "302ca143a2a7203f"
    assert (FCN_TEACHER.id, FCN_STUDENT.id) == ("51f892b8395e3b32", "ad9b5be4a7ead5c4")


def test_inception_is_what_the_paper_says_of_it() -> None:
    assert INCEPTION_V4_IMAGENET.model.name == "inception_v4"
    assert INCEPTION_V4_IMAGENET.optimiser.weight_decay == 8e-5
    assert INCEPTION_V4_IMAGENET.average == 0.9999


def test_a_shrunk_recipe_keeps_the_shape_of_its_training() -> None:
    small = shrunk(ALEXNET_CIFAR10, images=3000, epochs=6)
    assert (small.data.limit, small.data.validation, small.epochs) == (3000, 1500, 6)
    assert small.schedule.milestones == (2, 4)
    assert small.precision == "fp32"
    assert small.optimiser == ALEXNET_CIFAR10.optimiser
    # Drops that fall together in a very short training are one.
    assert shrunk(ALEXNET_CIFAR10, images=3000, epochs=1).schedule.milestones == (1,)
    # What has no validation split gets none, and a schedule without steps stays.
    digits = shrunk(FCN_TEACHER, images=500, epochs=2, model__hidden=(32,))
    assert (digits.data.validation, digits.schedule, digits.model.hidden) == (0, FCN_TEACHER.schedule, (32,))
