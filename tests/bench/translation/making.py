"""Results nobody measured, shaped like those of a large GPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.results import BenchResults, CaseResult, Timing
from benchmarks.translation import BENCH
from benchmarks.translation.results import (
    DecodingCase,
    DecodingResult,
    Speed,
    StepCase,
    StepResult,
    TimedEntry,
    TrainingCase,
    TrainingEntry,
    TrainingResult,
)

SESSION = {
    "date": "2026-11-20T12:00:00+00:00",
    "command": "python -m benchmarks translation",
    "softtargets": "0.1.0",
    "torch": "2.11.0",
    "device_name": "NVIDIA H200",
}
EAGER = {"replication": 300_000, "iwslt": 160_000}
MULTIPLES = {"replication": {1: 4.5, 4: 8.4, 16: None}, "iwslt": {1: 2.9}}


def results(*measured: CaseResult, sessions=(SESSION,)) -> BenchResults:
    return replace(BENCH.results(), sessions=sessions, measured=measured)


def training(size: str, runs: int, multiple: float | None) -> TrainingResult:
    eager = EAGER[size]
    turns = tuple(Speed(int(2 * share * eager), 2.0) for share in (0.98, 1.02))
    ours = TrainingEntry("ours", "failed", "out of memory")
    if multiple is not None:
        speed = Speed(int(2 * multiple * eager), 2.0)
        ours = TrainingEntry("ours", speeds=(speed,), setup=31.5, memory=runs * 1_900_000_000)
    case = TrainingCase(size, 4096, "bf16", "multi30k", runs)
    rival = TrainingEntry("eager", speeds=turns, setup=1.2, memory=1_700_000_000)
    return TrainingResult(case=case, session=0, entries=(ours, rival), padding=0.13)


def timed(name: str, seconds: float) -> TimedEntry:
    return TimedEntry(name, time=Timing(seconds, 0.9 * seconds, 1.1 * seconds, 5))


def made_up() -> BenchResults:
    """All kinds: two sizes, a pack that did not fit, a step that is too slow, a rival in batches of two sizes."""
    packs = [training(size, *pack) for size, each in MULTIPLES.items() for pack in each.items()]
    step = StepResult(
        case=StepCase("replication", 4096, "bf16", "multi30k"),
        session=0,
        entries=(timed("label smoothing", 2e-3), timed("labo", 2.2e-3)),
    )
    search = DecodingResult(
        case=DecodingCase("multi30k", 5, 32, 1000, "bf16", "multi30k"),
        session=0,
        entries=(timed("ours", 0.1), timed("hugging face 256", 2.0), timed("hugging face 1000", 1.25)),
    )
    return results(*packs, step, search)
