"""The whole command: case after case, written to disk after each, so that a cut loses nothing."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch

from softtargets.bench.losses.grid import Plan
from softtargets.bench.losses.linear import measure_linear
from softtargets.bench.losses.measuring import Bench, measure
from softtargets.bench.losses.results import Results
from softtargets.bench.machine import describe
from softtargets.bench.sessions import RESULTS, directory_for, earlier, keep, still_there
from softtargets.bench.timing import copy_rate, timer_for
from softtargets.bench.watching import Watcher
from softtargets.storage import make_directory


def default_directory(device: torch.device) -> Path:
    """``benchmarks/losses/nvidia-h200``: one place per kind of device."""
    return directory_for("losses", device)


def run(
    plan: Plan,
    directory: Path,
    device: torch.device,
    command: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> Results:
    """Measure what the plan says and is not there yet; return everything that is."""
    watcher = watcher or Watcher()
    path = directory / RESULTS
    session = describe(device, command)
    results = earlier(path, session, Results.load, Results(), resume=resume, overwrite=overwrite)
    # A case is there when everybody asked for took part: ratios are taken within one case, never across.
    there = {item.case for item in results.cases if all(map(item.entry, plan.contestants))}
    projected = {item.case for item in results.linear if all(map(item.entry, plan.linear_contestants))}
    cases = [case for case in plan.cases if case not in there]
    linear = [case for case in plan.linear if case not in projected]
    total = len(plan.cases) + len(plan.linear)
    watcher.planned(total, total - len(cases) - len(linear))
    if not cases and not linear:
        return results
    make_directory(directory)
    results = replace(results, sessions=(*results.sessions, session))
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        timer = timer_for(device)
        rate = copy_rate(timer, device, plan.seconds)
        bench = Bench(device, timer, rate, len(results.sessions) - 1, plan.seconds)
        for case in cases:
            watcher.started(str(case))
            result = measure(case, plan.contestants, bench)
            results = keep(results, "cases", result, path)
            watcher.finished(result)
            still_there(device, path)
        for projection in linear:
            watcher.started(str(projection))
            found = measure_linear(projection, plan.linear_contestants, bench)
            results = keep(results, "linear", found, path)
            watcher.finished(found)
            still_there(device, path)
    return results
