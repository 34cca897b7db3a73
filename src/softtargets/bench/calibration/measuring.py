"""One case: ours and its rivals take turns on the same logits."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, replace

import torch

from softtargets.bench.calibration.checking import Reference, complaint, reference
from softtargets.bench.calibration.contestants import Contestant, contestant
from softtargets.bench.calibration.grid import Plan
from softtargets.bench.calibration.logits import Examples, made_up
from softtargets.bench.calibration.results import Case, CaseResult, Entry, Memory
from softtargets.bench.calibration.weighing import Unweighed, refuse_to_starve, weigh_apart, weigh_on_gpu
from softtargets.bench.failing import Absent, explain, release
from softtargets.bench.timing import Task, WallTimer, interleave, wait_for


@dataclass(frozen=True)
class Bench:
    """What all cases of one session share; `device` is where the cases that are not on the CPU are."""

    device: torch.device
    session: int
    plan: Plan

    def place(self, case: Case) -> torch.device:
        """Where a case is measured."""
        return torch.device("cpu") if case.device == "cpu" else self.device


class OnceWarm(WallTimer):
    """The clock on the wall, until the device is done too. What is measured is long: one repetition warms it up."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def warm_up(self, task: Task) -> None:
        """One repetition."""
        task.prepare()
        task.run()

    def sample(self, task: Task) -> float:
        """One repetition, with nothing queued before or after."""
        task.prepare()
        wait_for(self._device)
        begun = time.perf_counter()
        task.run()
        wait_for(self._device)
        return time.perf_counter() - begun


def measure(case: Case, bench: Bench) -> CaseResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    plan, device = bench.plan, bench.place(case)
    entries: dict[str, Entry] = {}
    runs: dict[str, Contestant] = {}
    for name in plan.contestants:
        try:
            runs[name] = contestant(name, device, plan.batch)
            entries[name] = Entry(name, memory=_weigh_first(name, case, bench))
        except Exception as error:
            runs.pop(name, None)
            status = "absent" if isinstance(error, Absent) else "failed"
            reason = str(error) if isinstance(error, Unweighed) else explain(error)
            entries[name] = Entry(name, status, reason)
    # Only now: while others are weighed there should be room for them.
    examples = made_up(case.examples, case.classes, device)
    wanted = reference(examples)
    memory = {name: entry.memory for name, entry in entries.items()}
    for name, entry in _timed(runs, memory, examples, wanted, plan.repeats).items():
        entries[name] = replace(entry, memory=memory[name])
    if plan.memory and device.type == "cuda":
        for name, run in runs.items():
            if entries[name].status != "failed":
                release(device)
                entries[name] = replace(entries[name], memory=weigh_on_gpu(run, examples, device))
    return CaseResult(case, bench.session, torch.get_num_threads(), *wanted, tuple(entries.values()))


def _weigh_first(name: str, case: Case, bench: Bench) -> tuple[Memory, ...]:
    """On a CPU. Beside a GPU the CPU is there to compare speeds, and nobody is weighed."""
    if not bench.plan.memory or bench.device.type != "cpu":
        return ()
    return weigh_apart(name, case, bench.plan.batch, torch.get_num_threads())


def _timed(
    runs: dict[str, Contestant],
    memory: dict[str, tuple[Memory, ...]],
    examples: Examples,
    wanted: Reference,
    repeats: int,
) -> dict[str, Entry]:
    """Everybody's turns; `memory` is what they are known to take on the CPU."""
    found: dict[str, float] = {}

    def task(name: str) -> Task:
        def prepare() -> None:
            # Some leave arrays as large as the logits in circles, and nobody collects while clocks run.
            gc.collect()
            refuse_to_starve(max((weight.peak for weight in memory[name]), default=0))

        def run() -> None:
            found[name] = runs[name](examples)

        return Task(run, prepare)

    tasks = {name: task(name) for name in runs}
    timings, broken = interleave(OnceWarm(examples.logits.device), tasks, 0.0, fewest=repeats, most=repeats)
    entries = {name: Entry(name, "failed", reason) for name, reason in broken.items()}
    for name, timing in timings.items():
        ece = found[name]
        reason = complaint(name, ece, wanted)
        status = "disagrees" if reason else "ok"
        entries[name] = Entry(name, status, reason, timing, ece, abs(ece - wanted.ece))
    return entries
