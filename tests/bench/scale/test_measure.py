from __future__ import annotations

import gc
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks.scale import BENCH, measure
from benchmarks.scale.operations import Broken, Done
from benchmarks.scale.results import ClaimCase, StoreCase
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")


@pytest.fixture
def told(monkeypatch):
    """Operations that take as long as they are told to, in the place of real ones."""
    asked = []

    def done(name, root, runs):
        asked.append((name, runs, len([item for item in Path(root).iterdir() if item.is_dir()])))
        if name == "find":
            raise Broken("no such thing")
        return Done(0.5 * len(asked), 4, 1000, 0.1 * len(asked))

    monkeypatch.setattr(measure, "done_apart", done)
    return asked


def test_a_store_grows_from_case_to_case_and_is_gone_at_the_end(told, tmp_path):
    grid = BENCH.grid("cpu", sizes="2,5", operations="write,find", processes="1", repeats=2, where=tmp_path)
    run = BENCH.measurer(grid, CPU, 0)
    small, large = (run(case) for case in grid.cases[:2])
    assert told == [
        ("write", 2, 2),
        ("write", 2, 2),
        ("find", 2, 2),
        ("write", 5, 5),
        ("write", 5, 5),
        ("find", 5, 5),
    ]
    assert (small.case, large.case) == (StoreCase(2), StoreCase(5))
    write, find = small.entries
    assert (write.time.low, write.time.median, write.time.high, write.count) == (0.5, 0.75, 1.0, 4)
    assert write.each == 0.125
    assert write.peak == 1000
    assert small.busy("write") == pytest.approx(0.1 / 4)
    assert (find.status, find.reason) == ("failed", "no such thing")
    assert large.bytes > small.bytes > 0
    assert large.inodes > small.inodes == 2 * 7 + 1
    assert list(tmp_path.iterdir())
    del run
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_large_stores_have_one_turn(told, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "LARGE", 2)
    grid = BENCH.grid("cpu", sizes="2,3", operations="write", processes="1", repeats=3, where=tmp_path)
    run = BENCH.measurer(grid, CPU, 0)
    assert [run(case).entries[0].time.repetitions for case in grid.cases[:2]] == [3, 1]


def test_a_store_that_is_not_what_it_was_is_told(told, tmp_path, monkeypatch):
    def lose(name, root, runs):
        os.rename(next(item for item in Path(root).iterdir() if item.is_dir()), root.parent / "lost")
        return Done(1.0, 1, None, 0.5)

    monkeypatch.setattr(measure, "done_apart", lose)
    grid = BENCH.grid("cpu", sizes="3", operations="write", processes="1", repeats=1, where=tmp_path)
    (entry,) = BENCH.measurer(grid, CPU, 0)(grid.cases[0]).entries
    assert (entry.status, entry.reason) == ("failed", "the store has 2 runs after it, not 3")


def test_competitions(tmp_path):
    grid = BENCH.grid("cpu", sizes="1", operations="none", processes="2", claims=6, where=tmp_path)
    found = BENCH.measurer(grid, CPU, 3)(ClaimCase(2, 6))
    claims, finishes = found.entries
    assert (claims.status, finishes.status, found.session) == ("ok", "ok", 3)
    assert claims.done + claims.refused == 12
    assert finishes.done == 6
    assert claims.per_second > 0


def test_a_disk_that_is_too_small_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    room = {"f_bavail": 1000, "f_frsize": 4096, "f_favail": 10**9}
    monkeypatch.setattr(measure.os, "statvfs", lambda path: SimpleNamespace(**room))
    with pytest.raises(
        SofttargetsError, match=r"100,000 runs take up to 13 GB, and .* has 0 GB; give another disk"
    ):
        measure.refuse_to_fill(tmp_path, 100_000)
    measure.refuse_to_fill(tmp_path, 10)
    room |= {"f_bavail": 10**9, "f_favail": 1000}
    with pytest.raises(SofttargetsError, match="up to 4,000 files"):
        measure.refuse_to_fill(tmp_path, 100)
    room["f_favail"] = 0  # file systems without a limit say so
    measure.refuse_to_fill(tmp_path, 100)
