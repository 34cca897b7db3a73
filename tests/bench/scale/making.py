"""Results as somebody may have measured them."""

from __future__ import annotations

from benchmarks.results import Timing
from benchmarks.scale import BENCH
from benchmarks.scale.results import (
    EACH,
    OPERATIONS,
    ClaimCase,
    ClaimEntry,
    ClaimResult,
    StoreCase,
    StoreEntry,
    StoreResult,
)


def entry(name, seconds, count=1, peak=1_000_000):
    return StoreEntry(
        name, time=Timing(1.5 * seconds, seconds, 2 * seconds, 3), count=count, peak=peak, busy=0.5 * seconds
    )


def store(runs, costs):
    """A store in which each operation takes so many seconds."""
    entries = tuple(
        entry(name, cost * (4 if name in EACH else 1), 4 if name in EACH else 1) for name, cost in costs
    )
    return StoreResult(
        case=StoreCase(runs),
        session=0,
        entries=entries,
        bytes=30_000 * runs,
        inodes=8 * runs,
        index_bytes=900 * runs,
    )


def claim(processes, claims, finishes):
    entries = (
        ClaimEntry("claims", seconds=2.0, done=2 * claims, refused=claims // 2),
        ClaimEntry("finishes", seconds=0.5, done=finishes // 2),
    )
    return ClaimResult(case=ClaimCase(processes, 100), session=0, entries=entries)


def made_up():
    """What is done for each costs the same everywhere, what is done with all costs in proportion; but for two."""
    results = BENCH.results()
    for runs in (10, 100, 10_000):
        costs = [(name, 0.004 if name in EACH else 1e-5 * runs) for name in OPERATIONS]
        costs = [(name, cost * (runs / 100 if name in ("find", "plan") else 1)) for name, cost in costs]
        results = results.keeping(store(runs, costs))
    for processes in (1, 8):
        results = results.keeping(claim(processes, 1000 * processes, 400))
    return results
