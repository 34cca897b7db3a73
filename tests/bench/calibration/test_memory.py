from __future__ import annotations

import sys

import pytest
import torch

from benchmarks.calibration import memory
from benchmarks.calibration.memory import (
    Unweighed,
    main,
    refuse_to_starve,
    resident_peak,
    sizes,
    weigh_apart,
)
from benchmarks.calibration.results import CalibrationCase

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of a process")


@needs_linux
def test_a_peak_is_seen_though_it_is_gone_afterwards():
    def grow() -> None:
        torch.ones(10_000_000)  # float32

    # The kernel may take memory from a process at any moment, which hides some growth.
    assert 38e6 < max(resident_peak(grow) for _ in range(5)) < 80e6
    assert min(resident_peak(lambda: None) for _ in range(5)) < 5e6


def test_a_quarter_and_all():
    assert sizes(1000) == (250, 1000)


@needs_linux
def test_the_fresh_process_tells_what_it_found(capsys):
    main([f'["ours streamed", 400, 5, 64, {torch.get_num_threads()}]'])
    assert 0 <= int(capsys.readouterr().out) < 50e6


@needs_linux
def test_memory_is_weighed_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(memory, "sizes", lambda examples: (examples,))
    (found,) = weigh_apart("ours streamed", CalibrationCase("cpu", 400, 5), 64, 1)
    assert found.examples == 400
    assert 0 <= found.peak < 50e6


def test_nothing_is_weighed_where_the_kernel_does_not_tell(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "CLEAR", tmp_path / "none")
    assert weigh_apart("ours", CalibrationCase("cpu", 400, 5), 64, 1) == ()


@needs_linux
def test_a_process_that_breaks_says_why(monkeypatch):
    def process(code: int, err: str = ""):
        done = type("Done", (), {"returncode": code, "stderr": err, "stdout": ""})
        monkeypatch.setattr(memory.subprocess, "run", lambda *_, **__: done)

    process(-9)
    with pytest.raises(Unweighed, match="ended by signal 9: perhaps out of memory"):
        weigh_apart("ours", CalibrationCase("cpu", 400, 5), 64, 1)
    process(1, "Traceback\nValueError: too heavy\n")
    with pytest.raises(Unweighed, match="ValueError: too heavy"):
        weigh_apart("ours", CalibrationCase("cpu", 400, 5), 64, 1)


def test_nobody_is_run_who_would_leave_nothing_for_others(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 10e9)
    refuse_to_starve(8_000_000_000)
    with pytest.raises(MemoryError, match=r"needs 9\.5 GB beyond its input"):
        refuse_to_starve(9_500_000_000)


@needs_linux
def test_four_times_what_a_quarter_took_must_be_there(monkeypatch):
    asked = []

    def weigh(name, examples, classes, batch, threads):
        asked.append(examples)
        return 3_000_000_000

    monkeypatch.setattr(memory, "available", lambda: 10e9)
    monkeypatch.setattr(memory, "_weigh_in_process", weigh)
    with pytest.raises(MemoryError, match=r"12\.0 GB"):
        weigh_apart("ours", CalibrationCase("cpu", 400, 5), 64, 1)
    assert asked == [100]


@needs_linux
def test_the_kernel_tells_what_is_available():
    assert 0 < memory.available() < 1e15
