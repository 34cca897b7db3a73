from __future__ import annotations

import gc

import pytest
import torch

from benchmarks.clocks import (
    EventClock,
    Timed,
    WallClock,
    back_to_back,
    copy_rate,
    interleave,
    peak_memory,
    summarise,
    whole,
)
from benchmarks.results import Timing

CPU = torch.device("cpu")


class Slow(WallClock):
    """Time that passes only when somebody works."""

    def __init__(self) -> None:
        super().__init__(CPU, now=lambda: self.time)
        self.time = 0.0
        self.log: list[str] = []

    def work(self, name: str, *durations: float) -> Timed:
        left = list(durations)

        def run() -> None:
            self.log.append(name)
            self.time += left.pop(0) if len(left) > 1 else left[0]

        return Timed(run)


def test_a_sample_is_what_the_clock_says_without_the_preparation():
    clock = Slow()
    task = clock.work("a", 0.5)

    def prepare() -> None:
        clock.time += 100

    task.prepare = prepare
    assert clock.sample(task) == 0.5
    assert clock.time == 100.5


def test_quartiles():
    assert summarise([4.0, 1.0, 2.0, 3.0, 5.0]) == Timing(3.0, 2.0, 4.0, 5)
    assert summarise([2.0]) == Timing(2.0, 2.0, 2.0, 1)


def test_everybody_gets_the_same_time_in_turns():
    clock = Slow()
    tasks = {"fast": clock.work("fast", 1.0), "slow": clock.work("slow", 4.0)}
    timings, broken = interleave(clock, tasks, 12.0, fewest=2, most=100)
    assert broken == {}
    assert timings["fast"] == Timing(1.0, 1.0, 1.0, 12)
    assert timings["slow"].repetitions == 3
    timed = clock.log[6:]  # after three warm-up runs each
    assert timed[:6] == ["slow", "fast", "fast", "slow", "slow", "fast"]


def test_the_fewest_and_the_most_repetitions_hold():
    clock = Slow()
    timings, _ = interleave(clock, {"a": clock.work("a", 9.0)}, 1.0, fewest=5, most=9)
    assert timings["a"].repetitions == 5
    timings, _ = interleave(clock, {"a": clock.work("a", 0.1)}, 1e9, fewest=5, most=9)
    assert timings["a"].repetitions == 9


def test_who_breaks_is_named_with_the_reason_and_the_others_go_on():
    clock = Slow()
    seen = []

    def bad() -> None:
        seen.append(1)
        if len(seen) == 5:
            raise RuntimeError("no more\nof this")

    tasks = {"bad": Timed(bad), "good": clock.work("good", 1.0)}
    timings, broken = interleave(clock, tasks, 10.0, fewest=3)
    assert broken == {"bad": "RuntimeError: no more"}
    assert timings["good"].repetitions == 10


def test_the_collector_rests_while_timing_and_comes_back():
    states = []
    interleave(WallClock(CPU), {"a": Timed(lambda: states.append(gc.isenabled()))}, 0.0)
    assert not any(states)
    assert gc.isenabled()


def test_back_to_back_divides_by_the_number_of_calls_and_takes_the_best_series():
    clock = Slow()
    # One call to see how long it takes, then three series of ten.
    task = clock.work("a", *[1.0] * 11, *[0.5] * 10, 2.0)
    assert back_to_back(clock, task, 30.0) == pytest.approx(0.5)
    assert len(clock.log) == 31


def test_a_copy_rate_counts_bytes_read_and_written():
    class Half(WallClock):
        def sample(self, timed: Timed) -> float:
            timed.run()
            return 0.5

    assert copy_rate(Half(CPU), seconds=0.0) == 2 * 2**26 / 0.5


def test_one_repetition_may_be_enough_to_warm_up():
    calls: list[int] = []
    WallClock(CPU, warm_up=1).warm_up(Timed(lambda: calls.append(1)))
    assert len(calls) == 1


def test_events_come_after_the_cache_is_flushed_and_the_host_has_its_head_start(monkeypatch):
    log = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            log.append("event")

        def synchronize(self):
            log.append("wait")

        def elapsed_time(self, other):
            return 2.5  # milliseconds

    class Properties:
        L2_cache_size = 1 << 20

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: log.append("wait"))
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: log.append(cycles), raising=False)
    timer = EventClock(torch.device("cpu"))
    assert timer._scratch.numel() == 1 << 27
    timer._scratch.fill_(1)
    task = Timed(lambda: log.append("run"), lambda: log.append("prepare"))
    monkeypatch.setattr(timer, "finish", lambda: log.append("wait"))
    timer.warm_up(task)
    assert log == ["prepare", "wait", "run"] * 3 + ["wait"]
    assert 0 < task.host < 1
    log.clear()
    task.host = 1e-3
    assert timer.sample(task) == 2.5e-3
    assert log == ["prepare", 4_000_000, "event", "run", "event", "wait"]
    assert not timer._scratch.any()
    task.host = 1.0  # nobody waits that long
    timer.sample(task)
    assert 10_000_000 in log


def test_nobody_counts_memory_on_a_cpu():
    assert peak_memory(torch.device("cpu"), lambda: None) is None


@pytest.mark.cuda
def test_events_see_the_device_and_not_the_host():
    device = torch.device("cuda")
    timer = EventClock(device)
    values = torch.randn(1 << 28, device=device)
    timings, broken = interleave(timer, {"add": Timed(lambda: values.add_(1))}, 0.2)
    assert not broken
    rate = 2 * values.numel() * 4 / timings["add"].median
    assert 0.5 < rate / copy_rate(timer) < 1.5
    # A tiny kernel takes microseconds on the device, however slow the host is.
    small = torch.randn(10, device=device)
    timings, _ = interleave(timer, {"add": Timed(lambda: small.add_(1))}, 0.1)
    assert timings["add"].median < 2e-5


@pytest.mark.cuda
def test_peak_memory_on_a_gpu():
    device = torch.device("cuda")

    def allocate() -> None:
        torch.empty(1 << 24, dtype=torch.uint8, device=device)

    assert peak_memory(device, allocate) == 1 << 24


def test_whole_repetitions_until_the_time_is_up():
    clock = Slow()

    def run() -> None:
        clock.time += 0.4

    assert whole(run, 1.0, clock) == (3, pytest.approx(1.2))
    assert whole(run, 0.0, clock) == (1, pytest.approx(0.4))  # one at least
