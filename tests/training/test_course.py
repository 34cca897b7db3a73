from __future__ import annotations

import pytest
import torch

from softtargets.recipes import Cosine, Digits, Step
from softtargets.training.course import Course
from softtargets.training.tasks import prepare

DIGITS = prepare(Digits(limit=150), torch.device("cpu"))


def test_steps_and_batches(recipe):
    course = Course(recipe, DIGITS)
    assert (course.steps_per_epoch, course.total_steps) == (5, 20)
    assert course.epoch(3).shapes == course.epoch(0).units == (32, 32, 32, 32, 22)
    assert Course(recipe.replace({"batch": 30}), DIGITS).epoch(0).shapes == (30,) * 5
    cut = Course(recipe.replace({"epochs": None, "steps": 7}), DIGITS)
    assert cut.total_steps == 7
    assert (course.total_units, cut.total_units) == (600, 150 + 2 * 32)


def test_rates_are_those_of_the_schedule_and_nothing_moves_after_the_end(recipe):
    steps = recipe.replace({"schedule": Step(milestones=[1], factor=0.5), "epochs": None, "steps": 7})
    course = Course(steps, DIGITS)
    assert course.rates(0) == [0.1] * 5
    assert course.rates(1) == [0.05, 0.05, 0.0, 0.0, 0.0]
    falling = Course(recipe.replace({"schedule": Cosine()}), DIGITS)
    everything = [rate for epoch in range(4) for rate in falling.rates(epoch)]
    assert everything == sorted(everything, reverse=True)
    assert everything[0] == pytest.approx(0.1)


def test_when_a_net_is_measured(recipe):
    course = Course(recipe.replace({"epochs": None, "steps": 12, "measure_every": 4}), DIGITS)
    assert [steps for steps in range(1, 13) if course.is_measured_after(steps)] == [4, 5, 8, 10, 12]
