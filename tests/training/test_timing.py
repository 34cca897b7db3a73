"""Steps of several trainings are timed in turns."""

from __future__ import annotations

import pytest
import torch

from softtargets.recipes import MLP, SGD, CrossEntropy, Digits, Distillation, LabelSmoothing, Recipe
from softtargets.runs import RunStore
from softtargets.training import TimedTraining, seconds_in_turns, train
from softtargets.training.scheduling import Resources

RECIPE = Recipe(data=Digits(limit=48), model=MLP(hidden=(8,)), epochs=2, batch=16)


@pytest.fixture
def resources(tmp_path):
    return Resources(RunStore(tmp_path), torch.device("cpu"), None)


@pytest.mark.parametrize("epochs", [1, 3])
def test_steps_go_on_beyond_epochs_and_beyond_the_recipes_end(resources, epochs):
    training = TimedTraining(RECIPE.replace({"measure_epochs": epochs}), resources)
    taken = training.seconds(20)
    (slot,) = training._pack.slots
    assert slot.step == 23
    assert len(slot.history) == 7  # an epoch has three steps, and what is measured after each is not timed
    assert taken > 0
    assert list(resources.store.root.iterdir()) == []


def test_each_training_takes_its_turn(resources):
    trainings = [
        TimedTraining(RECIPE.replace({"regulariser": part}), resources)
        for part in (CrossEntropy(), LabelSmoothing())
    ]
    asked, real = [], TimedTraining.seconds
    for place, training in enumerate(trainings):
        training.seconds = lambda steps, place=place, training=training: (
            asked.append(place) or real(training, steps)
        )
    found = seconds_in_turns(trainings, turns=3, seconds=1e-4)
    assert asked == [0, 0, 1, 1, 0, 0, 1]
    assert [len(each) for each in found] == [3, 3]
    assert all(value > 0 for each in found for value in each)


def test_more_work_takes_longer(resources):
    slow = RECIPE.replace({"model": MLP(hidden=(1500, 1500))})
    both = seconds_in_turns([TimedTraining(each, resources) for each in (RECIPE, slow)], seconds=0.02)
    assert min(both[1]) > min(both[0])  # the fastest turns: a busy machine may slow down any one


def test_a_teacher_is_asked_too(resources):
    with pytest.raises(Exception, match="run"):
        TimedTraining(RECIPE.replace({"regulariser": Distillation(teacher=RECIPE)}), resources)
    train([RECIPE], resources.store, device="cpu")
    assert (
        TimedTraining(RECIPE.replace({"regulariser": Distillation(teacher=RECIPE)}), resources).seconds(2) > 0
    )


def test_a_training_that_fails_has_no_speed(resources):
    with pytest.raises(ValueError, match="the training that was timed failed"):
        TimedTraining(RECIPE.replace({"optimiser": SGD(lr=1e30)}), resources).seconds(40)
