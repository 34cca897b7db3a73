"""The whole command: case after case, written to disk after each, so that a cut loses nothing."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import torch

from softtargets.bench.machine import describe
from softtargets.bench.sessions import RESULTS, directory_for, earlier, keep, still_there
from softtargets.bench.training.accuracy import check_data, compare_accuracy
from softtargets.bench.training.grid import Plan
from softtargets.bench.training.measuring import Bench, Round
from softtargets.bench.training.results import OURS, Results
from softtargets.bench.watching import Watcher
from softtargets.storage import make_directory


def default_directory(device: torch.device) -> Path:
    """``benchmarks/training/nvidia-h200``: one place per kind of device."""
    return directory_for("training", device)


def run(
    plan: Plan,
    directory: Path,
    device: torch.device,
    command: str,
    *,
    data_dir: Path | None = None,
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
    there = {item.case for item in results.cases if all(map(item.entry, (OURS, *plan.rivals)))}
    compared = {item.case for item in results.accuracy}
    cases = [case for case in plan.cases if case not in there]
    checks = [check for check in plan.accuracy if check not in compared]
    for check in checks:
        check_data(check, data_dir)
    total = len(plan.cases) + len(plan.accuracy)
    watcher.planned(total, total - len(cases) - len(checks))
    if not cases and not checks:
        return results
    make_directory(directory)
    results = replace(results, sessions=(*results.sessions, session))
    bench = Bench(device, len(results.sessions) - 1, plan.seconds)
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        for setting, group in groupby(cases, key=lambda case: case.setting):
            round_ = None
            for case in group:
                watcher.started(str(case))
                round_ = round_ or Round(setting, plan.rivals, bench)
                result = round_.measure(case)
                results = keep(results, "cases", result, path)
                watcher.finished(result)
                still_there(device, path)
        for check in checks:
            watcher.started(str(check))
            found = compare_accuracy(check, bench.session, device, data_dir)
            results = keep(results, "accuracy", found, path)
            watcher.finished(found)
            still_there(device, path)
    return results
