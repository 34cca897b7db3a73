from __future__ import annotations

import pytest

from softtargets.exceptions import RecipeError
from softtargets.recipes import (
    SGD,
    Adam,
    Constant,
    Cosine,
    InverseSqrt,
    Linear,
    Optimiser,
    Schedule,
    Step,
    build,
)
from softtargets.training.course import rate_factor
from softtargets.training.optimisers import make_update

from .making import NAMES


@pytest.mark.parametrize("part", NAMES[Optimiser].values(), ids=lambda part: part.name)
def test_every_optimiser_a_recipe_names_has_an_update(part):
    assert make_update([part()], ["weight"], lead=0).lead == 0


@pytest.mark.parametrize("part", NAMES[Schedule].values(), ids=lambda part: part.name)
def test_every_schedule_a_recipe_names_has_a_rule(part):
    assert rate_factor(part(), 0, 10, 100) == 1


def test_each_optimiser_has_its_own_default_rate():
    assert (SGD().lr, Adam().lr) == (0.1, 1e-3)
    assert build(Optimiser, {"name": "adam", "lr": 0.001}).canonical() == {"name": "adam"}


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0}, {"momentum": 0.9, "dampening": 0.1}, {"dampening": 0.5}]
)
def test_nesterov_needs_momentum_and_no_dampening(options):
    with pytest.raises(RecipeError) as caught:
        SGD(nesterov=True, **options)
    assert str(caught.value) == "nesterov: true needs momentum above 0 and dampening 0"
    assert SGD(nesterov=False, **options).nesterov is False


def test_nesterov_with_momentum_is_accepted():
    assert SGD(nesterov=True, momentum=0.9).nesterov is True


@pytest.mark.parametrize("form", ["loss", "norm"])
def test_decoupled_decay_is_no_part_of_the_loss(form):
    with pytest.raises(RecipeError) as caught:
        Adam(decoupled=True, decay_form=form)
    assert str(caught.value) == (
        f"decay_form: {form} is part of the loss, but decoupled decay is not; use gradient, or decoupled: false"
    )
    assert Adam(decay_form=form).decay_form == form
    assert Adam(decoupled=True).decay_form == "gradient"


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_options_for_layers_are_left_out_of_the_identity_until_they_are_used(kind):
    assert kind(rates={}, decay_on=[], decay_form="gradient").canonical() == {"name": kind.name}
    used = kind(rates={"head.*": 0}, decay_on=["*.weight"], decay_form="norm")
    assert used.canonical() == {
        "name": kind.name,
        "rates": [["head.*", 0.0]],
        "decay_on": ["*.weight"],
        "decay_form": "norm",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rates": {"head.*": -1}}, "rates.head.*: -1.0 is out of range: must be at least 0"),
        ({"decay_on": "head.*"}, "decay_on: 'head.*' is not a list, each item text"),
        ({"decay_on": [3]}, "decay_on.0: 3 is not text"),
        (
            {"decay_form": "l2"},
            "decay_form: 'l2' is not known; allowed: gradient, loss, norm",
        ),
    ],
)
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_the_whole_message_for_an_option_that_cannot_be(kind, options, message):
    with pytest.raises(RecipeError) as caught:
        kind(**options)
    assert str(caught.value) == message


def test_the_inverse_root_needs_a_warm_up():
    with pytest.raises(RecipeError) as caught:
        InverseSqrt(warmup=0)
    assert str(caught.value) == "warmup: 0 is out of range: must be at least 1"
    assert InverseSqrt().warmup == 1


@pytest.mark.parametrize("milestones", [[2, 1], [1, 1], [1, 3, 2], [5, 5, 6]])
def test_milestones_that_do_not_rise_are_refused(milestones):
    with pytest.raises(RecipeError) as caught:
        Step(milestones=milestones)
    assert str(caught.value) == f"milestones: {milestones} must be in increasing order"


@pytest.mark.parametrize("milestones", [[], [3], [1, 2, 30]])
def test_milestones_that_rise_are_accepted(milestones):
    assert Step(milestones=milestones).milestones == tuple(milestones)


def test_only_step_counts_in_epochs_unless_told():
    assert Step().unit == "epoch"
    assert {Constant().unit, Linear().unit, Cosine().unit, InverseSqrt().unit} == {"step"}
