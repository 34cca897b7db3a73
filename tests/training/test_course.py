from __future__ import annotations

import pytest

from softtargets.recipes import Cosine, Step
from softtargets.training.course import Course


def test_steps_and_batches(recipe):
    course = Course(recipe, 150)
    assert (course.steps_per_epoch, course.total_steps) == (5, 20)
    assert [course.batch_size(place) for place in range(5)] == [32, 32, 32, 32, 22]
    assert Course(recipe.replace({"batch": 30}), 150).batch_size(4) == 30
    cut = Course(recipe.replace({"epochs": None, "steps": 7}), 150)
    assert cut.total_steps == 7
    assert (course.total_images, cut.total_images) == (600, 150 + 2 * 32)


def test_rates_are_those_of_the_schedule_and_nothing_moves_after_the_end(recipe):
    steps = recipe.replace({"schedule": Step(milestones=[1], factor=0.5), "epochs": None, "steps": 7})
    course = Course(steps, 150)
    assert course.rates(0) == [0.1] * 5
    assert course.rates(1) == [0.05, 0.05, 0.0, 0.0, 0.0]
    falling = Course(recipe.replace({"schedule": Cosine()}), 150)
    everything = [rate for epoch in range(4) for rate in falling.rates(epoch)]
    assert everything == sorted(everything, reverse=True)
    assert everything[0] == pytest.approx(0.1)


def test_when_a_net_is_measured(recipe):
    course = Course(recipe.replace({"epochs": None, "steps": 12, "measure_every": 4}), 150)
    assert [steps for steps in range(1, 13) if course.is_measured_after(steps)] == [4, 5, 8, 10, 12]
