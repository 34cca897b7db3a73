from __future__ import annotations

import pytest
import torch

from benchmarks.bench import BenchGrid, Contestant
from benchmarks.calibration import measure
from benchmarks.calibration.grid import grid
from benchmarks.calibration.memory import Unweighed
from benchmarks.calibration.results import CalibrationResult, Memory
from benchmarks.failures import Absent

CPU = torch.device("cpu")


def small(device: torch.device = CPU, **options) -> BenchGrid:
    words = {"examples": 200, "classes": 5, "batch": 64, "repeats": 2, "rivals": "none", "memory": False}
    return grid(device.type, **words | options)


def measured(device: torch.device = CPU, case: int = 0, **options) -> CalibrationResult:
    asked = small(device, **options)
    return measure.measurer(asked, device, 0)(asked.cases[case])


def test_everybody_is_timed_and_compared_with_float64():
    result = measured()
    assert [entry.name for entry in result.entries] == ["ours", "ours with intervals", "ours streamed"]
    for entry in result.entries:
        assert entry.status == "ok"
        assert entry.time.repetitions == 2
        assert entry.error == abs(entry.ece - result.reference) < 1e-6
        assert entry.memory == ()


def test_who_is_wrong_is_found_out_though_timed(monkeypatch):
    def contestant(name, device, batch):
        return Contestant(name, lambda examples: 0.5)

    monkeypatch.setattr(measure, "contestant", contestant)
    first = measured().entries[0]
    assert first.status == "disagrees"
    assert first.time is not None
    assert first.reason.startswith("its ECE is 0.5, in float64 it is 0.")


def test_who_breaks_or_is_not_there_is_written_down(monkeypatch):
    def contestant(name, device, batch):
        if name == "ours":
            raise Absent("not here")

        def run(examples):
            raise RuntimeError("no luck")

        return Contestant(name, run)

    monkeypatch.setattr(measure, "contestant", contestant)
    entries = measured().entries
    found = [(entry.status, entry.reason, entry.time) for entry in entries]
    assert found[0] == ("absent", "not here", None)
    assert found[1] == ("failed", "RuntimeError: no luck", None)


def test_who_dies_where_it_is_weighed_is_not_run_here(monkeypatch):
    def weigh(name, case, batch, threads):
        if name == "ours streamed":
            raise Unweighed("its process was ended by signal 9: perhaps out of memory")
        return (Memory(50, 1000), Memory(200, 1000))

    monkeypatch.setattr(measure, "weigh_apart", weigh)
    first, _, last = measured(memory=True).entries
    assert first.memory == (Memory(50, 1000), Memory(200, 1000))
    assert first.time is not None
    assert (last.status, last.time) == ("failed", None)
    assert last.reason == "its process was ended by signal 9: perhaps out of memory"


def test_who_would_take_more_than_there_is_fails_without_being_run(monkeypatch):
    monkeypatch.setattr(measure, "weigh_apart", lambda *_: (Memory(50, 10**18), Memory(200, 10**18)))
    for entry in measured(memory=True).entries:
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

        return Contestant(name, run)

    monkeypatch.setattr(measure, "contestant", contestant)
    measured(repeats=1)
    assert seen == [0] * 6  # three contestants, a warm-up and a turn each


def test_the_cpu_beside_a_gpu_is_not_weighed(monkeypatch):
    def weigh(*_):
        raise AssertionError("weighed")

    monkeypatch.setattr(measure, "weigh_apart", weigh)
    result = measured(torch.device("cuda"), memory=True)
    assert result.case.device == "cpu"
    assert all(entry.memory == () for entry in result.entries)


@pytest.mark.cuda
def test_a_gpu_is_measured_with_its_memory():
    result = measured(torch.device("cuda"), case=1, memory=True, rivals="torchmetrics")
    for entry in result.entries:
        assert entry.status in ("ok", "absent")
        assert entry.status == "absent" or [found.examples for found in entry.memory] == [50, 200]
