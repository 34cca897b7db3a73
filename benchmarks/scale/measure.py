"""How scale is measured: one store grows from case to case, and is gone at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from benchmarks.bench import BenchGrid
from benchmarks.failures import Stated, admit
from benchmarks.results import Timing
from benchmarks.scale.competing import compete
from benchmarks.scale.operations import done_apart
from benchmarks.scale.results import (
    ClaimCase,
    ClaimEntry,
    ClaimResult,
    StoreCase,
    StoreEntry,
    StoreResult,
)
from benchmarks.scale.stores import disk, prepare, recipes
from softtargets.exceptions import SofttargetsError
from softtargets.runs import RunStore
from softtargets.storage import make_directory

# Of one run, in blocks of 4 KiB, with room to spare; and its files and directories. A merged copy takes as much again.
BYTES, INODES = 64_000, 20
LARGE = 1000  # of larger stores everything is done once


class Lost(Stated):
    """The store is not what it was."""


class Ground:
    """A directory that is removed when nobody holds it any more, with the store that grows in it."""

    def __init__(self, where: Path | None) -> None:
        if where is not None:
            make_directory(where)
        self.path = Path(tempfile.mkdtemp(prefix="scale-", dir=where))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def store(self, runs: int) -> RunStore:
        """The store with so many runs."""
        store = RunStore(self.path / "runs")
        prepare(store, recipes(runs))
        os.sync()  # or what is measured first waits for all of it
        return store


def measurer(
    grid: BenchGrid, device: torch.device, session: int
) -> Callable[[StoreCase | ClaimCase], StoreResult | ClaimResult]:
    """What measures one case after the other."""
    largest = max((case.runs for case in grid.cases if isinstance(case, StoreCase)), default=0)
    ground = Ground(grid.data_dir)
    refuse_to_fill(ground.path, largest)

    def measure(case: StoreCase | ClaimCase) -> StoreResult | ClaimResult:
        if isinstance(case, StoreCase):
            return measure_store(case, session, grid, ground, device)
        return measure_claims(case, session, grid, ground, device)

    return measure


def refuse_to_fill(path: Path, runs: int) -> None:
    """Raise before a disk is filled that others need."""
    found = os.statvfs(path)
    room = found.f_bavail * found.f_frsize
    if 2 * BYTES * runs > 0.5 * room:
        raise SofttargetsError(
            f"{runs:,} runs take up to {2 * BYTES * runs / 1e9:.0f} GB, and {path} has {room / 1e9:.0f} GB; give "
            "another disk with --where, or smaller --sizes"
        )
    if found.f_favail and 2 * INODES * runs > 0.5 * found.f_favail:
        raise SofttargetsError(
            f"{runs:,} runs take up to {2 * INODES * runs:,} files, and {path} has room for {found.f_favail:,}; give "
            "another disk with --where, or smaller --sizes"
        )


def measure_store(
    case: StoreCase, session: int, grid: BenchGrid, ground: Ground, device: torch.device
) -> StoreResult:
    """Everything that is done with a store of one size; whatever breaks is written down with its reason."""
    store = ground.store(case.runs)
    store.entries()
    taken, inodes = disk(store.root)
    index = (store.root / "index.json").stat().st_size
    turns = 1 if case.runs > LARGE else grid.repeats

    def enter(name: str) -> StoreEntry:
        found = [done_apart(name, store.root, case.runs) for _ in range(turns)]
        there = sum(1 for item in store.root.iterdir() if item.is_dir())
        if there != case.runs:
            raise Lost(f"the store has {there:,} runs after it, not {case.runs:,}")
        peaks = [one.peak for one in found if one.peak is not None]
        seconds = _timing([one.seconds for one in found])
        peak, busy = min(peaks, default=None), min(one.busy for one in found)
        return StoreEntry(name, time=seconds, count=found[0].count, peak=peak, busy=busy)

    entries, _ = admit(grid.names(case), enter, StoreEntry, device)
    return StoreResult(
        case=case,
        session=session,
        entries=tuple(entries.values()),
        bytes=taken,
        inodes=inodes,
        index_bytes=index,
    )


def _timing(seconds: list[float]) -> Timing:
    """The median, the fastest and the slowest of some turns."""
    return Timing(median(seconds), min(seconds), max(seconds), len(seconds))


def measure_claims(
    case: ClaimCase, session: int, grid: BenchGrid, ground: Ground, device: torch.device
) -> ClaimResult:
    """Processes that compete, each kind of competition in a store of its own."""

    def enter(name: str) -> ClaimEntry:
        place = Path(tempfile.mkdtemp(dir=ground.path))
        try:
            shares = compete(name, place / "runs", case.runs, case.processes)
        finally:
            shutil.rmtree(place)
        seconds = max(share.ended for share in shares) - min(share.begun for share in shares)
        done, refused = (sum(getattr(share, what) for share in shares) for what in ("done", "refused"))
        return ClaimEntry(name, seconds=seconds, done=done, refused=refused)

    entries, _ = admit(grid.names(case), enter, ClaimEntry, device)
    return ClaimResult(case=case, session=session, entries=tuple(entries.values()))
