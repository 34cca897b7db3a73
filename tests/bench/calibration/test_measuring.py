from __future__ import annotations

import pytest
import torch
from softtargets.bench.calibration import measuring
from softtargets.bench.calibration.grid import plan
from softtargets.bench.calibration.measuring import Bench, OnceWarm, measure
from softtargets.bench.calibration.results import Memory
from softtargets.bench.calibration.weighing import Unweighed
from softtargets.bench.failing import Absent
from softtargets.bench.timing import Task

CPU = torch.device("cpu")


def small(device: torch.device = CPU, **options) -> Bench:
    words = {"examples": 200, "classes": 5, "batch": 64, "repeats": 2, "rivals": "none", "memory": False}
    return Bench(device, 0, plan(device.type, **words | options))


def test_everybody_is_timed_and_compared_with_float64():
    bench = small()
    result = measure(bench.plan.cases[0], bench)
    assert [entry.name for entry in result.entries] == ["ours", "ours with intervals", "ours streamed"]
    for entry in result.entries:
        assert entry.status == "ok"
        assert entry.time.repetitions == 2
        assert entry.error == abs(entry.ece - result.reference) < 1e-6
        assert entry.memory == ()


def test_who_is_wrong_is_found_out_though_timed(monkeypatch):
    def contestant(name, device, batch):
        return lambda examples: 0.5

    monkeypatch.setattr(measuring, "contestant", contestant)
    bench = small()
    first = measure(bench.plan.cases[0], bench).entries[0]
    assert first.status == "disagrees"
    assert first.time is not None
    assert first.reason.startswith("its ECE is 0.5, in float64 it is 0.")


def test_who_breaks_or_is_not_there_is_written_down(monkeypatch):
    def contestant(name, device, batch):
        if name == "ours":
            raise Absent("not here")

        def run(examples):
            raise RuntimeError("no luck")

        return run

    monkeypatch.setattr(measuring, "contestant", contestant)
    bench = small()
    entries = measure(bench.plan.cases[0], bench).entries
    found = [(entry.status, entry.reason, entry.time) for entry in entries]
    assert found[0] == ("absent", "not here", None)
    assert found[1] == ("failed", "RuntimeError: no luck", None)


def test_who_dies_where_it_is_weighed_is_not_run_here(monkeypatch):
    def weigh(name, case, batch, threads):
        if name == "ours streamed":
            raise Unweighed("its process was ended by signal 9: perhaps out of memory")
        return (Memory(50, 1000), Memory(200, 1000))

    monkeypatch.setattr(measuring, "weigh_apart", weigh)
    bench = small(memory=True)
    first, _, last = measure(bench.plan.cases[0], bench).entries
    assert first.memory == (Memory(50, 1000), Memory(200, 1000))
    assert first.time is not None
    assert (last.status, last.time) == ("failed", None)
    assert last.reason == "its process was ended by signal 9: perhaps out of memory"


def test_who_would_take_more_than_there_is_fails_without_being_run(monkeypatch):
    monkeypatch.setattr(measuring, "weigh_apart", lambda *_: (Memory(50, 10**18), Memory(200, 10**18)))
    bench = small(memory=True)
    for entry in measure(bench.plan.cases[0], bench).entries:
        assert (entry.status, entry.reason) == ("failed", "out of memory")
        assert entry.memory[1] == Memory(200, 10**18)


def test_circles_are_collected_between_turns(monkeypatch):
    """An array that only the collector can free must not be there in the next turn."""

    class Circle:
        alive = 0

        def __init__(self):
            self.me = self
            Circle.alive += 1

        def __del__(self):
            Circle.alive -= 1

    seen = []

    def contestant(name, device, batch):
        def run(examples):
            seen.append(Circle.alive)
            Circle()
            return 0.5

        return run

    monkeypatch.setattr(measuring, "contestant", contestant)
    bench = small(repeats=3)
    measure(bench.plan.cases[0], bench)
    assert seen == [0] * 12  # three contestants, a warm-up and three turns each


def test_the_cpu_beside_a_gpu_is_not_weighed(monkeypatch):
    def weigh(*_):
        raise AssertionError("weighed")

    monkeypatch.setattr(measuring, "weigh_apart", weigh)
    bench = small(torch.device("cuda"), memory=True)
    case = bench.plan.cases[0]
    assert case.device == "cpu"
    assert bench.place(case) == CPU
    assert bench.place(bench.plan.cases[1]) == torch.device("cuda")
    assert all(entry.memory == () for entry in measure(case, bench).entries)


def test_one_repetition_warms_up():
    calls: list[int] = []
    timer = OnceWarm(CPU)
    timer.warm_up(Task(lambda: calls.append(1)))
    assert len(calls) == 1
    assert timer.sample(Task(lambda: calls.append(1))) >= 0
    assert len(calls) == 2


@pytest.mark.cuda
def test_a_gpu_is_measured_with_its_memory():
    bench = small(torch.device("cuda"), memory=True, rivals="torchmetrics")
    result = measure(bench.plan.cases[1], bench)
    for entry in result.entries:
        assert entry.status in ("ok", "absent")
        assert entry.status == "absent" or [found.examples for found in entry.memory] == [50, 200]
