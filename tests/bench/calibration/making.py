"""Results nobody measured, shaped like those of a GPU beside its CPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.calibration import BENCH
from benchmarks.calibration.results import CalibrationCase, CalibrationEntry, CalibrationResult, Memory
from benchmarks.results import BenchResults, Timing

SESSION = {
    "date": "2026-11-20T12:00:00+00:00",
    "command": "python -m benchmarks calibration",
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
ABSENT = CalibrationEntry("netcal", "absent", "netcal is not installed (pip install netcal)")


def entry(name: str, seconds: float, peaks: tuple[int, int] | None = None, **options) -> CalibrationEntry:
    weights = () if peaks is None else (Memory(250, peaks[0]), Memory(1000, peaks[1]))
    timing = Timing(seconds, 0.9 * seconds, 1.2 * seconds, 5)
    return CalibrationEntry(name, **{"time": timing, "ece": 0.02, "error": 1e-8, "memory": weights} | options)


def result(case: CalibrationCase, *entries: CalibrationEntry, threads: int = 2) -> CalibrationResult:
    return CalibrationResult(
        case=case, session=0, threads=threads, reference=0.02, rounding=0.0, entries=entries
    )


def results(*measured: CalibrationResult, sessions=(SESSION,)) -> BenchResults:
    return replace(BENCH.results(), sessions=sessions, measured=measured)


def cpu(*more: CalibrationEntry) -> CalibrationResult:
    entries = tuple(entry(name, seconds) for name, seconds in SECONDS.items())
    return result(CalibrationCase("cpu", 1000, 10), *entries, *(more or (ABSENT,)))


def gpu() -> CalibrationResult:
    entries = (
        entry("ours", 0.25, (5_000_000, 5_000_000)),
        entry("ours with intervals", 0.75, (5_000_000, 5_000_000)),
        entry("ours streamed", 0.3, (4_000_000, 4_000_000)),
        entry("torchmetrics", 0.125, (10_000_000, 40_000_000)),
        CalibrationEntry("netcal", "failed", "out of memory"),
    )
    return result(CalibrationCase("cuda", 10_000, 10), *entries)


def made_up() -> BenchResults:
    return results(cpu(), gpu())
