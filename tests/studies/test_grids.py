"""What grids are made of."""

from __future__ import annotations

import pytest

from softtargets.recipes import (
    CIFAR10,
    MLP,
    Clean,
    CrossEntropy,
    Digits,
    LabelSmoothing,
    Linear,
    Recipe,
    Step,
)
from softtargets.studies import Settings
from softtargets.studies.grids import noise, smoothing, smoothing_to, stretched, trial

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=100, schedule=Step(milestones=(1,)))


def test_no_smoothing_is_cross_entropy_whichever_way_it_is_written():
    assert smoothing(0.0) == smoothing(0.0, "others") == smoothing_to(1.0) == CrossEntropy()


@pytest.mark.parametrize("p", [0.05, 0.35, 0.7, 0.9, 0.99])
def test_mass_on_the_label_and_clean_rates_are_named_by_the_numbers_that_people_write(p):
    assert smoothing_to(p) == LabelSmoothing(alpha=float(f"{1 - p:.2f}"), spread="others")
    assert noise(p).rate == float(f"{1 - p:.2f}")
    assert noise(1.0) == Clean()


@pytest.mark.parametrize(
    ("epochs", "milestones"), [(100, (50, 75)), (205, (102, 153)), (3, (1, 2)), (1, (1,)), (2, (1,))]
)
def test_rates_drop_at_the_same_shares_of_any_training(epochs, milestones):
    found = stretched(BASE.replace({"epochs": epochs}), Settings(1, {"epochs": epochs}), 1 / 2, 3 / 4)
    assert found.schedule == Step(milestones=milestones)


@pytest.mark.parametrize("chosen", ["schedule", "schedule.milestones", "schedule.factor"])
def test_a_schedule_that_a_user_chose_stays(chosen):
    assert stretched(BASE, Settings(1, {chosen: None}), 1 / 2) is BASE


def test_schedules_without_drops_and_trainings_counted_in_steps_stay():
    for other in (BASE.replace({"schedule": Linear()}), BASE.replace({"epochs": None, "steps": 5})):
        assert stretched(other, Settings(1), 1 / 2) is other


def test_a_trial_is_the_base_with_what_is_varied_and_its_names():
    found = trial(BASE, {"data": CIFAR10(), "seed": 3}, alpha=0.1, role="net")
    assert (found.recipe.data, found.recipe.seed, found.recipe.epochs) == (CIFAR10(), 3, 100)
    assert found.labels == {"alpha": 0.1, "role": "net"}
