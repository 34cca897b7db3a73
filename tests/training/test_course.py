from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.recipes import Constant, Cosine, Digits, InverseSqrt, Linear, Schedule, Step
from softtargets.training.course import Course, rate_factor
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
    assert course.rates(0) == (0.1,) * 5
    assert course.rates(1) == (0.05, 0.05, 0.0, 0.0, 0.0)
    assert [course.rate(step) for step in (4, 5, 6, 7)] == [0.1, 0.05, 0.05, 0.0]
    falling = Course(recipe.replace({"schedule": Cosine()}), DIGITS)
    everything = [rate for epoch in range(4) for rate in falling.rates(epoch)]
    assert everything == sorted(everything, reverse=True)
    assert everything[0] == pytest.approx(0.1)


def test_when_a_net_is_measured(recipe):
    course = Course(recipe.replace({"epochs": None, "steps": 12, "measure_every": 4}), DIGITS)
    assert [steps for steps in range(1, 13) if course.is_measured_after(steps)] == [4, 5, 8, 10, 12]


# Schedules.


def factors(schedule, steps_per_epoch, total):
    return [rate_factor(schedule, step, steps_per_epoch, total) for step in range(total)]


@pytest.mark.parametrize(
    ("schedule", "steps_per_epoch", "expected"),
    [
        (Constant(), 2, [1, 1, 1, 1, 1, 1]),
        (Constant(warmup=4), 2, [0.25, 0.5, 0.75, 1, 1, 1]),
        (Constant(warmup=2, unit="epoch"), 2, [0.5, 0.5, 1, 1, 1, 1]),
        (Step(milestones=[1, 2]), 2, [1, 1, 0.1, 0.1, 0.01, 0.01]),
        (Step(milestones=[1, 2], unit="step"), 2, [1, 0.1, 0.01, 0.01, 0.01, 0.01]),
        (Step(milestones=[2], factor=2), 2, [1, 1, 1, 1, 2, 2]),
        (Step(), 2, [1, 1, 1, 1, 1, 1]),
        (Step(milestones=[2], factor=0.5, warmup=1), 3, [1, 1, 1, 1, 1, 1]),
        (Step(milestones=[3], factor=0.5, warmup=2, unit="step"), 2, [0.5, 1, 1, 0.5, 0.5, 0.5]),
        (Linear(), 2, [1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        (Linear(end=0.4), 2, [1, 0.9, 0.8, 0.7, 0.6, 0.5]),
        (Linear(unit="epoch"), 2, [1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3]),
        (Linear(warmup=2), 2, [0.5, 1, 1, 0.75, 0.5, 0.25]),
        (Linear(end=1), 2, [1, 1, 1, 1, 1, 1]),
        (Cosine(unit="epoch"), 2, [1, 1, 0.75, 0.75, 0.25, 0.25]),
        (Cosine(end=0.5, unit="epoch"), 2, [1, 1, 0.875, 0.875, 0.625, 0.625]),
        (Cosine(warmup=3), 2, [1 / 3, 2 / 3, 1, 1, 0.75, 0.25]),
        (InverseSqrt(), 2, [1, 1, 2**-0.5, 3**-0.5, 0.5, 5**-0.5]),
        (InverseSqrt(warmup=2), 2, [0.5, 1, 1, (2 / 3) ** 0.5, 0.5**0.5, 0.4**0.5]),
        (InverseSqrt(unit="epoch"), 2, [1, 1, 1, 1, 2**-0.5, 2**-0.5]),
    ],
)
def test_six_steps_by_hand(schedule, steps_per_epoch, expected):
    assert factors(schedule, steps_per_epoch, 6) == pytest.approx(expected, rel=1e-12)


kinds = st.one_of(
    st.builds(Constant, warmup=st.integers(0, 30), unit=st.sampled_from(["step", "epoch"])),
    st.builds(
        Step,
        warmup=st.integers(0, 30),
        unit=st.sampled_from(["step", "epoch"]),
        milestones=st.lists(st.integers(1, 60), unique=True, max_size=4).map(sorted),
        factor=st.floats(0.05, 2),
    ),
    *(
        st.builds(
            kind,
            warmup=st.integers(0, 30),
            unit=st.sampled_from(["step", "epoch"]),
            end=st.floats(0, 2),
        )
        for kind in (Linear, Cosine)
    ),
    st.builds(InverseSqrt, warmup=st.integers(1, 30), unit=st.sampled_from(["step", "epoch"])),
)


def by_formula(schedule, step, steps_per_epoch, total):
    if schedule.unit == "step":
        now, length = step, total
    else:
        now = next(
            epoch for epoch in range(total) if epoch * steps_per_epoch <= step < (epoch + 1) * steps_per_epoch
        )
        length = len({s // steps_per_epoch for s in range(total)})
    if now + 1 <= schedule.warmup:
        return (now + 1) / schedule.warmup
    if isinstance(schedule, Step):
        rate = 1.0
        for milestone in schedule.milestones:
            if milestone <= now:
                rate *= schedule.factor
        return rate
    if isinstance(schedule, Constant):
        return 1.0
    if isinstance(schedule, InverseSqrt):
        return schedule.warmup**0.5 * now**-0.5
    # A line, or half a cosine, through (warmup, 1) and (length, end).
    span = length - schedule.warmup
    share = (now - schedule.warmup) / span
    if isinstance(schedule, Linear):
        return (1 - share) * 1 + share * schedule.end
    return schedule.end + (1 - schedule.end) * math.cos(math.pi / 2 * share) ** 2


@settings(max_examples=150, deadline=None)
@given(schedule=kinds, steps_per_epoch=st.integers(1, 20), total=st.integers(1, 80), data=st.data())
def test_any_schedule_against_its_formula(schedule, steps_per_epoch, total, data):
    step = data.draw(st.integers(0, total - 1))
    found = rate_factor(schedule, step, steps_per_epoch, total)
    assert found == pytest.approx(by_formula(schedule, step, steps_per_epoch, total), rel=1e-9, abs=1e-12)
    assert type(found) is float


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_falling_schedules_fall_to_just_above_their_end(kind):
    found = factors(kind(end=0.1), 1, 1000)
    assert found[0] == 1
    assert all(before > after for before, after in pairwise(found))
    assert 0.1 < found[-1] < 0.102


@pytest.mark.parametrize("kind", [Constant, Step, Linear, Cosine, InverseSqrt])
def test_warm_up_rises_to_the_full_rate_and_hands_over_there(kind):
    found = factors(kind(warmup=5, unit="step"), 10, 50)
    assert found[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1])
    assert found[5] == 1


@pytest.mark.parametrize("kind", [Constant, Linear, Cosine, InverseSqrt])
def test_warm_up_longer_than_the_training_never_ends(kind):
    assert factors(kind(warmup=10), 1, 4) == pytest.approx([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("kind", [Linear, Cosine])
def test_the_unit_decides_how_often_the_rate_changes(kind):
    assert len(set(factors(kind(unit="step"), 4, 12))) == 12
    by_epoch = factors(kind(unit="epoch"), 4, 12)
    assert [len(set(by_epoch[start : start + 4])) for start in (0, 4, 8)] == [1, 1, 1]
    assert len(set(by_epoch)) == 3


def test_a_last_epoch_that_is_cut_short_counts_as_one():
    assert factors(Linear(unit="epoch"), 4, 10) == pytest.approx([1] * 4 + [2 / 3] * 4 + [1 / 3] * 2)


def test_a_training_of_one_step_has_the_full_rate():
    for kind in (Constant, Step, Linear, Cosine, InverseSqrt):
        assert rate_factor(kind(), 0, 1, 1) == 1


@pytest.mark.parametrize("warmup", [1, 10, 4000])
def test_the_inverse_root_is_that_of_the_transformer(warmup):
    """Vaswani et al. 2017, equation 3: lr = d**-0.5 * min(t**-0.5, t * warmup**-1.5), at its peak for t = warmup."""
    peak = min(warmup**-0.5, warmup * warmup**-1.5)
    schedule = InverseSqrt(warmup=warmup)
    for step in (warmup - 1, warmup, warmup + 1, 2 * warmup, 4 * warmup, 100 * warmup):
        paper = min(max(step, 1) ** -0.5, (step + 1) * warmup**-1.5)
        assert rate_factor(schedule, step, 10, 10**6) == pytest.approx(paper / peak, rel=1e-12)
    assert rate_factor(schedule, 4 * warmup, 10, 10**6) == 0.5


def test_the_inverse_root_does_not_depend_on_the_length():
    assert rate_factor(InverseSqrt(warmup=4), 50, 7, 100) == rate_factor(InverseSqrt(warmup=4), 50, 7, 10**6)


def test_a_schedule_without_a_rule_is_refused():
    with pytest.raises(TypeError, match=r"no rule for the schedule Schedule\(\)"):
        rate_factor(Schedule(), 0, 1, 1)
