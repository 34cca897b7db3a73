from __future__ import annotations

import pytest

from softtargets.cli.pace import Lap, Pace, Rate

from .watched import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


# --- Rate ---


def test_a_rate_is_unknown_until_something_was_added_twice(clock):
    rate = Rate(clock)
    assert rate.per_second() is None
    rate.add(1_000_000)
    assert rate.per_second() is None
    clock.wait(10)
    assert rate.per_second() is None
    rate.add(50)
    assert rate.per_second() == 5


def test_a_rate_at_one_moment_is_not_infinite(clock):
    rate = Rate(clock)
    for _ in range(100):
        rate.add(128)
    assert rate.per_second() is None


@pytest.mark.parametrize("pause", [0.01, 0.1, 1.0, 7.0, 45.0])
def test_a_steady_rate_is_found_however_often_it_is_reported(pause, clock):
    rate = Rate(clock)
    for _ in range(max(20, int(100 / pause))):
        rate.add(200 * pause)
        clock.wait(pause)
    clock.wait(-pause)
    assert rate.per_second() == pytest.approx(200, rel=0.01)


def test_a_rate_forgets_what_was_before_the_window(clock):
    rate = Rate(clock, window=30)
    for speed in [10] * 100 + [1000] * 31:
        clock.wait(1)
        rate.add(speed)
    assert rate.per_second() == pytest.approx(1000)


def test_a_rate_falls_while_nothing_happens(clock):
    rate = Rate(clock)
    for _ in range(20):
        clock.wait(1)
        rate.add(100)
    before = rate.per_second()
    clock.wait(1000)
    assert before == pytest.approx(100)
    assert 0 < rate.per_second() < 2


def test_a_rate_remembers_little_however_much_it_hears(clock):
    rate = Rate(clock)
    for _ in range(50_000):
        clock.wait(0.01)
        rate.add(1)
    assert len(rate._marks) <= 62
    assert rate.per_second() == pytest.approx(100, rel=0.02)


# --- Lap ---


def test_a_run_knows_how_long_it_takes(clock):
    lap = Lap(step=0, total=1000, batch=64, clock=clock)
    assert (lap.fraction, lap.units_per_second(), lap.seconds_left()) == (0, None, None)
    for step in range(100, 501, 100):
        clock.wait(2)
        lap.progressed(step, 100 * 64)
    assert lap.fraction == 0.5
    assert lap.units_per_second() == 3200
    assert lap.seconds_left() == 10
    assert lap.units_left == 500 * 64


def test_what_was_done_before_a_resume_is_no_speed(clock):
    lap = Lap(step=900, total=1000, batch=10, clock=clock)
    clock.wait(1)
    lap.progressed(910, 100)
    assert lap.fraction == 0.91
    assert lap.seconds_left() is None
    clock.wait(1)
    lap.progressed(920, 100)
    assert lap.units_per_second() == 100
    assert lap.seconds_left() == 8


def test_smaller_last_batches_are_taken_into_account(clock):
    lap = Lap(step=0, total=100, batch=64, clock=clock)
    lap.progressed(2, 64 + 32)
    assert lap.units == 100 * 48
    assert lap.units_left == 98 * 48


@pytest.mark.parametrize(("step", "total"), [(0, 0), (5, 0), (12, 10)])
def test_impossible_totals_do_no_harm(step, total, clock):
    lap = Lap(step, total, batch=1, clock=clock)
    assert lap.fraction == 1
    assert lap.units_left == 0


# --- Pace ---


def advance(pace: Pace, clock: Clock, runs: dict[str, int], seconds: int, speed: int) -> None:
    """Every run does one step of `speed` images a second."""
    for _ in range(seconds):
        clock.wait(1)
        for run in runs:
            runs[run] += 1
            pace.progressed(run, runs[run], speed)


def test_nothing_is_known_at_first(clock):
    pace = Pace(clock)
    assert (pace.units_per_second(), pace.seconds_left(), pace.elapsed()) == (None, None, 0)
    pace.planned(10, 2)
    clock.wait(3)
    assert (pace.units_per_second(), pace.seconds_left(), pace.elapsed()) == (None, None, 3)


def test_runs_that_have_not_begun_count_like_those_that_have(clock):
    pace = Pace(clock)
    pace.planned(runs=20, reused=4)
    under_way = {"a": 0, "b": 0}
    for run in under_way:
        pace.started(run, 0, 100, batch=50)
    advance(pace, clock, under_way, 21, speed=50)
    assert pace.units_per_second() == pytest.approx(100, rel=0.03)
    # 2 runs with 79 steps left, 14 with 100, at two steps a second
    assert pace.seconds_left() == pytest.approx((2 * 79 + 14 * 100) / 2, rel=0.03)


def test_a_plan_that_knows_the_images_is_believed(clock):
    pace = Pace(clock)
    pace.planned(runs=3, reused=0, units={"a": 5000, "b": 20_000, "c": 40_000})
    pace.started("a", 0, 100, batch=50)
    under_way = {"a": 0}
    advance(pace, clock, under_way, 50, speed=50)
    assert pace.seconds_left() == pytest.approx((2500 + 60_000) / 50)
    pace.finished("a")
    assert pace.seconds_left() == pytest.approx(60_000 / 50)
    pace.finished("c", failed=True)
    assert pace.seconds_left() == pytest.approx(20_000 / 50)
    assert (pace.done, pace.failed) == (2, 1)


def test_a_partly_known_plan_estimates_the_rest(clock):
    pace = Pace(clock)
    pace.planned(runs=3, reused=0, units={"b": 1500})
    pace.started("a", 0, 10, batch=50)
    under_way = {"a": 0}
    advance(pace, clock, under_way, 5, speed=50)
    assert pace.seconds_left() == pytest.approx((250 + 1500 + (500 + 1500) / 2) / 50)


def test_resumed_runs_are_counted_and_are_no_speed(clock):
    pace = Pace(clock)
    pace.planned(2, 0)
    pace.started("a", 90, 100, batch=10)
    pace.started("b", 0, 100, batch=10)
    pace.started("a", 90, 100, batch=10)  # again, because its pack was too large for the memory
    assert pace.resumed == 1
    advance(pace, clock, {"a": 90}, 5, speed=10)
    assert pace.units_per_second() == 10
    assert pace.seconds_left() == (5 + 100) * 10 / 10


def test_the_end(clock):
    pace = Pace(clock)
    pace.planned(1, 0)
    pace.started("a", 0, 10, 10)
    pace.finished("a")
    assert pace.seconds_left() == 0
    assert pace.laps == {}


def test_everything_reused(clock):
    pace = Pace(clock)
    pace.planned(5, 5)
    assert pace.seconds_left() == 0


def test_runs_that_other_processes_train_add_to_the_speed_if_they_began_after_us(clock):
    pace = Pace(clock)
    pace.planned(10, 0)
    clock.wait(10)
    pace.finished("early", units=1_000_000)
    assert pace.units_per_second() is None
    pace.finished("ours too", units=1000, since_we_began=True)
    assert pace.units_per_second() == 100
    pace.started("a", 0, 10, 100)
    advance(pace, clock, {"a": 0}, 10, speed=100)
    assert pace.units_per_second() == 100 + 1000 / 20


def test_a_failure_elsewhere_says_nothing_about_the_length_of_a_run(clock):
    pace = Pace(clock)
    pace.planned(3, 0)
    pace.finished("failed", failed=True, units=10)
    pace.started("a", 0, 10, 100)
    advance(pace, clock, {"a": 0}, 5, speed=100)
    assert pace.seconds_left() == pytest.approx((500 + 1000) / 100)


def test_progress_of_an_unknown_run_is_speed_all_the_same(clock):
    pace = Pace(clock)
    advance(pace, clock, {"stranger": 0}, 3, speed=7)
    assert pace.units_per_second() == 7
    assert pace.seconds_left() is None
