"""Results nobody measured, shaped like those of a large GPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.results import BenchResults, CaseResult
from benchmarks.training import BENCH
from benchmarks.training.results import (
    AccuracyCase,
    AccuracyResult,
    Speed,
    TrainingCase,
    TrainingEntry,
    TrainingResult,
)

SESSION = {
    "date": "2026-11-20T12:00:00+00:00",
    "command": "python -m benchmarks training --accuracy",
    "softtargets": "0.1.0",
    "commit": "0123456789abcdef",
    "uncommitted_changes": False,
    "python": "3.12.3",
    "torch": "2.11.0",
    "device_name": "NVIDIA H200",
}
EAGER_RATES = {"fcn": 200_000, "cnn": 125_000, "alexnet": 25_000, "resnet56": 4_800, "resnet18": 12_000}
# Times the eager loop, by arrangement and number of runs.
MULTIPLES = {
    "fcn": {"stacked": {1: 9.6, 4: 24.0, 16: 44.0, 64: 55.0}, "streams": {1: 10.4, 4: 19.0, 16: 21.0}},
    "cnn": {"stacked": {1: 6.1, 4: 11.0, 16: 14.5, 64: 16.0}, "streams": {1: 7.0, 4: 12.0, 16: 12.5}},
    "alexnet": {"streams": {1: 8.0, 4: 11.6, 16: 12.0}},
    "resnet56": {"streams": {1: 5.2, 4: 10.5, 16: 12.6}},
    "resnet18": {"streams": {1: 2.9, 4: 4.6, 16: None}},
}


def results(*measured: CaseResult, sessions=(SESSION,)) -> BenchResults:
    return replace(BENCH.results(), sessions=sessions, measured=measured)


def speed(rate: float) -> Speed:
    return Speed(images=int(2 * rate), seconds=2.0)


def case_result(
    net: str, arrangement: str, runs: int, multiple: float | None, also_bf16: bool
) -> TrainingResult:
    eager = EAGER_RATES[net]
    turns = (speed(0.98 * eager), speed(1.02 * eager))
    ours = TrainingEntry("ours", "failed", "out of memory")
    if multiple is not None:
        ours = TrainingEntry("ours", speeds=(speed(multiple * eager),), setup=31.5, memory=runs * 900_000_000)
    rivals = [TrainingEntry("eager", speeds=turns, setup=1.2, memory=700_000_000)]
    if also_bf16:
        slower = tuple(speed(0.85 * turn.rate) for turn in turns)
        rivals.append(TrainingEntry("eager bf16", speeds=slower, setup=1.4, memory=500_000_000))
    chosen = arrangement == "stacked" or "stacked" not in MULTIPLES[net]
    case = TrainingCase(net, 128, 100, "bf16", arrangement, runs)
    return TrainingResult(case=case, session=0, chosen=chosen, entries=(ours, *rivals))


def made_up(also_bf16: bool = False) -> BenchResults:
    """Everything a picture or a table has to cope with: two arrangements, one, a failure, accuracies."""
    cases = [
        case_result(net, arrangement, runs, multiple, also_bf16)
        for net, arrangements in MULTIPLES.items()
        for arrangement, multiples in arrangements.items()
        for runs, multiple in multiples.items()
    ]
    accuracy = AccuracyResult(
        case=AccuracyCase("digits", 30, "bf16", 5),
        session=0,
        ours=(0.972, 0.968, 0.970, 0.976, 0.966),
        eager=(0.970, 0.974, 0.966, 0.968, 0.964),
    )
    return results(*cases, accuracy)
