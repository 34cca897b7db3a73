from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.exceptions import RecipeError
from softtargets.recipes import SGD, Adam, Constant, Cosine, Linear, Optimiser, Schedule, Step, build
from softtargets.training.building import build_optimiser
from softtargets.training.schedules import rate_factor

from .making import NAMES


def parameters():
    return [nn.Parameter(torch.ones(2))]


@pytest.mark.parametrize("part", NAMES[Optimiser].values(), ids=lambda part: part.name)
def test_every_optimiser_a_recipe_names_can_be_built(part):
    assert build_optimiser(part(), parameters()).param_groups[0]["lr"] == part().lr


@pytest.mark.parametrize("part", NAMES[Schedule].values(), ids=lambda part: part.name)
def test_every_schedule_a_recipe_names_has_a_rule(part):
    assert rate_factor(part(), 0, 10, 100) == 1


def test_the_options_reach_torch():
    sgd = SGD(lr=0.3, momentum=0.9, nesterov=True, weight_decay=0.01)
    group = build_optimiser(sgd, parameters()).param_groups[0]
    assert {name: group[name] for name in vars(sgd)} == vars(sgd)
    adam = Adam(lr=0.3, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.02)
    group = build_optimiser(adam, parameters()).param_groups[0]
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (0.3, (0.8, 0.9), 1e-4, 0.02)


def test_decoupled_weight_decay_is_that_of_adamw():
    assert type(build_optimiser(Adam(decoupled=True), parameters())) is torch.optim.AdamW
    assert type(build_optimiser(Adam(), parameters())) is torch.optim.Adam


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


@pytest.mark.parametrize("milestones", [[2, 1], [1, 1], [1, 3, 2], [5, 5, 6]])
def test_milestones_that_do_not_rise_are_refused(milestones):
    with pytest.raises(RecipeError) as caught:
        Step(milestones=milestones)
    assert str(caught.value) == f"milestones: {milestones} must rise from one to the next"


@pytest.mark.parametrize("milestones", [[], [3], [1, 2, 30]])
def test_milestones_that_rise_are_accepted(milestones):
    assert Step(milestones=milestones).milestones == tuple(milestones)


def test_only_step_counts_in_epochs_unless_told():
    assert Step().unit == "epoch"
    assert {Constant().unit, Linear().unit, Cosine().unit} == {"step"}
