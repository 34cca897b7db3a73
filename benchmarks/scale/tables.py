"""Results of the scale bench as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from typing import Any

from benchmarks import tables
from benchmarks.results import BenchResults
from benchmarks.scale.head import BUSY, WORKERS, loads
from benchmarks.scale.results import (
    EACH,
    OPERATIONS,
    ClaimEntry,
    ClaimResult,
    StoreResult,
    exponent,
)
from benchmarks.tables import Table
from benchmarks.text import NOTHING, duration, megabytes, rate

TITLES = {
    "write": "write a finished run",
    "find": "find a run",
    "claim": "claim and give back",
    "delete": "delete a run",
    "carry 1": "take in a run from a file of its own",
    "carry 32": "take in a run, 32 in a file",
    "take": "take the next pack",
    "entries cold": "look at all runs, no index",
    "entries": "look at all runs, index",
    "entries again": "look again, one run is new",
    "list": "`runs list`",
    "verify": "`runs verify`",
    "plan": "`train`, all finished",
    "outlook": "campaign: first look",
    "look again": "campaign: look again",
    "pack": "`runs pack`",
    "merge": "`runs merge`",
    "page": "page of a study",
    "atlas": "atlas of that page",
}
# Growth is told between stores of at least so many runs: below, what is done once takes most of the time.
LEAST = 100


def stores(results: BenchResults) -> Table:
    """One line per operation: seconds for each size, and how they grow."""
    items = sorted(results.of(StoreResult), key=lambda item: item.case.runs)
    names = [name for name in OPERATIONS if any(item.entry(name) for item in items)]
    headings = ["operation", *(str(item.case) for item in items), "processors", "grows as", "peak memory"]
    rows = [
        [
            TITLES[name] + (", each" if name in EACH else ""),
            *(_time(item, name) for item in items),
            duration(next((busy for item in reversed(items) if (busy := item.busy(name))), None)),
            power(growth(items, name)),
            megabytes(_peak(items, name)),
        ]
        for name in names
    ]
    return headings, rows


def growth(items: list[StoreResult], name: str) -> float | None:
    """The exponent between the smallest and the largest store that are large enough to tell, of processor time."""
    points = [(item.case.runs, seconds) for item in items if (seconds := item.busy(name))]
    large = [point for point in points if point[0] >= LEAST]
    return exponent(large[0], large[-1]) if len(large) > 1 else None


def power(value: float | None) -> str:
    """
    >>> power(1.04), power(-0.02), power(None)
    ('n^1.04', 'n^-0.02', '–')
    """
    return NOTHING if value is None else f"n^{value:.2f}"


def _peak(items: list[StoreResult], name: str) -> int | None:
    peaks = [
        entry.peak for item in items if (entry := item.entry(name)) is not None and entry.peak is not None
    ]
    return peaks[-1] if peaks else None


def disk(results: BenchResults) -> Table:
    """What stores take on disk."""
    items = sorted(results.of(StoreResult), key=lambda item: item.case.runs)
    return tables.table(
        [
            ("runs", lambda item: f"{item.case.runs:,}"),
            ("on disk", lambda item: megabytes(item.bytes)),
            ("files and directories", lambda item: f"{item.inodes:,}"),
            ("bytes of a run", lambda item: f"{item.bytes // item.case.runs:,}"),
            ("index", lambda item: megabytes(item.index_bytes)),
        ],
        items,
    )


def claims(results: BenchResults) -> Table:
    """One line per number of processes."""
    items = sorted(results.of(ClaimResult), key=lambda item: item.case.processes)

    def shown(item: ClaimResult, name: str) -> str:
        return tables.shown(item.entry(name), lambda entry: rate(entry.per_second))

    return tables.table(
        [
            ("processes", lambda item: str(item.case.processes)),
            ("runs", lambda item: f"{item.case.runs:,}"),
            ("claims, all together", lambda item: shown(item, "claims")),
            ("held by another", lambda item: _refused(item.entry("claims"))),
            ("runs finished, all together", lambda item: shown(item, "finishes")),
        ],
        items,
    )


def _refused(entry: ClaimEntry | None) -> str:
    if entry is None or not entry.done + entry.refused:
        return NOTHING
    return f"{100 * entry.refused / (entry.done + entry.refused):.1f} %"


def heads(results: BenchResults) -> Table:
    """From which length of runs on a head is busy no more than a tenth of its time."""
    found = loads(results)
    headings = [
        "finished runs go",
        "cost of a run",
        "at most",
        *(f"{count} worker{'s' * (count > 1)}" for count in WORKERS),
    ]
    rows = [
        [load.what, duration(load.seconds), rate(load.per_second)]
        + [duration(load.shortest(count)) for count in WORKERS]
        for load in found
    ]
    return headings, rows


def summary(item: Any) -> str:
    """One case in one line, for who watches."""
    if isinstance(item, StoreResult):
        told = (f"{entry.name} {_time(item, entry.name)}" for entry in item.entries)
    else:
        told = (f"{entry.name} {rate(entry.per_second)}" for entry in item.entries)
    return f"{item.case}: " + "; ".join(told)


def _time(item: StoreResult, name: str) -> str:
    return tables.shown(item.entry(name), lambda _: duration(item.seconds(name)))


def remarks(results: BenchResults) -> list[str]:
    """What grows worse than in proportion; who failed, and why."""
    items = sorted(results.of(StoreResult), key=lambda item: item.case.runs)
    bad = []
    for name in OPERATIONS:
        found, most = growth(items, name), 0.2 if name in EACH else 1.2
        if found is not None and found > most:
            bad.append(f"{TITLES[name]} grows as {power(found)}, more than its share")
    return [*bad, *tables.notes(results, TITLES)]


def texts(results: BenchResults) -> dict[str, str]:
    """The files of text: a line for each operation and size; and tables to read."""
    records = [
        {"runs": item.case.runs, "processes": 1, "operation": entry.name, "status": entry.status}
        | {"seconds": entry.time and entry.time.low, "slowest": entry.time and entry.time.high}
        | {"processor_seconds": entry.busy}
        | {"count": entry.count, "peak_bytes": entry.peak, "reason": entry.reason, "session": item.session}
        for item, entry in tables.pairs(results.of(StoreResult))
    ]
    records += [
        {"runs": item.case.runs, "processes": item.case.processes, "operation": entry.name}
        | {"status": entry.status, "seconds": entry.seconds, "slowest": entry.seconds, "count": entry.done}
        | {"processor_seconds": None, "peak_bytes": None, "reason": entry.reason, "session": item.session}
        for item, entry in tables.pairs(results.of(ClaimResult))
    ]
    written = tables.document(
        "Scale: stores of 10 to 100,000 runs", results, _parts(results), remarks(results)
    )
    return {"results.csv": tables.csv_of(records, "runs"), "results.md": written}


def _parts(results: BenchResults) -> list[str]:
    parts = []
    if results.of(StoreResult):
        parts += [
            "## What is done with a store",
            "Seconds of the fastest turn, each in a fresh process; what is said to be each is for one run, or one pack "
            "of up to 32. Processors are the seconds that they worked for it with the largest store: the rest is "
            "waiting, for the disk or for other work on the machine. Growth is that of processor time, between the "
            f"smallest store of at least {LEAST} runs and the largest. Memory is what the process grew by with the "
            "largest store.",
            tables.pipes(stores(results)),
            "## On disk",
            tables.pipes(disk(results)),
        ]
    if results.of(ClaimResult):
        parts += ["## Processes that compete for the same runs", tables.pipes(claims(results))]
    if loads(results):
        parts += [
            "## When a head is busy",
            f"The shortest runs with which so many workers keep it busy for {BUSY:.0%} of its time: workers times the "
            "cost of a run over that share.",
            tables.pipes(heads(results)),
        ]
    return parts
