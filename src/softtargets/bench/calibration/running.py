"""The whole command: case after case, written to disk after each, so that a cut loses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from softtargets.bench.calibration.grid import Plan
from softtargets.bench.calibration.measuring import Bench, measure
from softtargets.bench.calibration.results import Results
from softtargets.bench.machine import describe
from softtargets.bench.sessions import RESULTS, directory_for, earlier, keep, still_there
from softtargets.bench.watching import Watcher
from softtargets.storage import make_directory

PACKAGES = ("torchmetrics", "netcal")


def default_directory(device: torch.device) -> Path:
    """``benchmarks/calibration/nvidia-h200``: one place per kind of device."""
    return directory_for("calibration", device)


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
    with threads(plan.threads):
        session = describe(device, command) | {name: _version(name) for name in PACKAGES}
        results = earlier(path, session, Results.load, Results(), resume=resume, overwrite=overwrite)
        # A case is there when everybody asked for took part: ratios are taken within one session, never across.
        there = {item.case for item in results.cases if all(map(item.entry, plan.contestants))}
        # A GPU is compared with the CPU of its own session: where one of the two is missing, both are measured.
        cases = [] if there.issuperset(plan.cases) else list(plan.cases)
        watcher.planned(len(plan.cases), len(plan.cases) - len(cases))
        if not cases:
            return results
        make_directory(directory)
        results = replace(results, sessions=(*results.sessions, session))
        bench = Bench(device, len(results.sessions) - 1, plan)
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            for case in cases:
                watcher.started(str(case))
                result = measure(case, bench)
                results = keep(results, "cases", result, path)
                watcher.finished(result)
                still_there(device, path)
    return results


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """So many threads of torch inside; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
