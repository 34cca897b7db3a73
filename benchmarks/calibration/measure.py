"""How calibration is measured: ours and its rivals take turns on the same logits."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.bench import BenchGrid, Contestant
from benchmarks.calibration.check import Reference, complaint, reference
from benchmarks.calibration.contestants import contestant
from benchmarks.calibration.logits import Examples, made_up
from benchmarks.calibration.memory import refuse_to_starve, weigh_apart, weigh_on_gpu
from benchmarks.calibration.results import CalibrationCase, CalibrationEntry, CalibrationResult, Memory
from benchmarks.clocks import Timed, WallClock, interleave
from benchmarks.failures import admit, release


def measurer(
    grid: BenchGrid, device: torch.device, session: int
) -> Callable[[CalibrationCase], CalibrationResult]:
    """What measures one case after the other; `device` is where the cases that are not on the CPU are."""

    def measure(case: CalibrationCase) -> CalibrationResult:
        place = torch.device("cpu") if case.device == "cpu" else device
        # Beside a GPU the CPU is there to compare speeds, and nobody is weighed.
        weighed = grid.memory and place == device
        return measure_case(case, session, grid, place, weighed)

    return measure


def measure_case(
    case: CalibrationCase, session: int, grid: BenchGrid, device: torch.device, weighed: bool
) -> CalibrationResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    runs: dict[str, Contestant] = {}

    def enter(name: str) -> CalibrationEntry:
        found = contestant(name, device, grid.batch)
        apart = weighed and device.type == "cpu"
        memory = weigh_apart(name, case, grid.batch, torch.get_num_threads()) if apart else ()
        runs[name] = found
        return CalibrationEntry(name, memory=memory)

    entries, _ = admit(grid.names(case), enter, CalibrationEntry, device)
    # Only now: while others are weighed there should be room for them.
    examples = made_up(case.examples, case.classes, device)
    wanted = reference(examples)
    weights = {name: entries[name].memory for name in runs}
    entries |= _timed(runs, weights, examples, wanted, grid.repeats)
    if weighed and device.type == "cuda":
        for name, run in runs.items():
            if entries[name].status != "failed":
                release(device)
                entries[name] = replace(entries[name], memory=weigh_on_gpu(run, examples, device))
    return CalibrationResult(
        case=case,
        session=session,
        entries=tuple(entries.values()),
        threads=torch.get_num_threads(),
        reference=wanted.ece,
        rounding=wanted.rounding,
    )


def _timed(
    runs: dict[str, Contestant],
    weights: dict[str, tuple[Memory, ...]],
    examples: Examples,
    wanted: Reference,
    repeats: int,
) -> dict[str, CalibrationEntry]:
    """Everybody's turns; `weights` is what they are known to take on the CPU."""
    found: dict[str, float] = {}

    def task(name: str) -> Timed:
        def prepare() -> None:
            # Some leave arrays as large as the logits in circles, and nobody collects while clocks run.
            gc.collect()
            refuse_to_starve(max((weight.peak for weight in weights[name]), default=0))

        def run() -> None:
            found[name] = runs[name].call(examples)

        return Timed(run, prepare)

    # What is measured is long: one repetition warms it up.
    clock = WallClock(examples.logits.device, warm_up=1)
    timings, broken = interleave(
        clock, {name: task(name) for name in runs}, 0.0, fewest=repeats, most=repeats
    )
    entries = {name: CalibrationEntry(name, "failed", reason) for name, reason in broken.items()}
    for name, timing in timings.items():
        reason = complaint(name, found[name], wanted)
        status, off = "disagrees" if reason else "ok", abs(found[name] - wanted.ece)
        entries[name] = CalibrationEntry(name, status, reason, timing, found[name], off)
    return {name: replace(entry, memory=weights[name]) for name, entry in entries.items()}
