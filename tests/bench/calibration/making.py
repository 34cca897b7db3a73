"""Results nobody measured, shaped like those of a GPU beside its CPU."""

from __future__ import annotations

from softtargets.bench.calibration.results import Case, CaseResult, Entry, Memory, Results
from softtargets.bench.measurement import Timing

SESSION = {
    "date": "2026-11-20T12:00:00+00:00",
    "command": "softtargets bench calibration",
    "softtargets": "0.1.0",
    "python": "3.12.3",
    "torch": "2.11.0",
    "torchmetrics": "1.9.0",
    "netcal": None,
    "device_name": "NVIDIA H200",
    "processor": "A processor",
    "threads": 2,
    "cores": 16,
}
SECONDS = {"ours": 1.0, "ours with intervals": 1.5, "ours streamed": 1.1, "torchmetrics": 2.0}
ABSENT = Entry("netcal", "absent", "netcal is not installed (pip install netcal)")


def entry(name: str, seconds: float, peaks: tuple[int, int] | None = None, **options) -> Entry:
    weights = () if peaks is None else (Memory(250, peaks[0]), Memory(1000, peaks[1]))
    timing = Timing(seconds, 0.9 * seconds, 1.2 * seconds, 5)
    return Entry(name, **{"time": timing, "ece": 0.02, "error": 1e-8, "memory": weights} | options)


def cpu(*more: Entry) -> CaseResult:
    entries = tuple(entry(name, seconds) for name, seconds in SECONDS.items())
    return CaseResult(Case("cpu", 1000, 10), 0, 2, 0.02, 0.0, (*entries, *(more or (ABSENT,))))


def gpu() -> CaseResult:
    entries = (
        entry("ours", 0.25, (5_000_000, 5_000_000)),
        entry("ours with intervals", 0.75, (5_000_000, 5_000_000)),
        entry("ours streamed", 0.3, (4_000_000, 4_000_000)),
        entry("torchmetrics", 0.125, (10_000_000, 40_000_000)),
        Entry("netcal", "failed", "out of memory"),
    )
    return CaseResult(Case("cuda", 10_000, 10), 0, 2, 0.02, 0.0, entries)


def made_up() -> Results:
    return Results((SESSION,), (cpu(), gpu()))
