"""One command: case after case, written to disk after each, so that a cut loses nothing and can be gone on from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.bench import Bench, BenchGrid
from benchmarks.failures import device_error
from benchmarks.machine import describe, differences
from benchmarks.progress import Quiet
from benchmarks.results import BenchResults
from softtargets.exceptions import SofttargetsError
from softtargets.storage import make_directory

RESULTS = "results.json"


def directory_for(bench: Bench, device: torch.device) -> Path:
    """``benchmarks/losses/nvidia-h200``: one place per bench and kind of device."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return Path("benchmarks") / bench.name / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "device")


def run(
    bench: Bench,
    grid: BenchGrid,
    directory: Path,
    device: torch.device,
    command: str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: Quiet | None = None,
) -> BenchResults:
    """Measure what the grid says and is not there yet; return everything that is."""
    progress = progress or Quiet()
    path = directory / RESULTS
    with _threads(grid.threads), torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        session = describe(device, command, bench.packages)
        results = _earlier(bench.results(), path, session, resume=resume, overwrite=overwrite)
        cases = missing(grid, results)
        if cases:
            # It refuses what could not be measured at the end before anything is said or written.
            measure = bench.measurer(replace(grid, cases=tuple(cases)), device, len(results.sessions))
            make_directory(directory)
            results = replace(results, sessions=(*results.sessions, session))
        progress.planned(len(grid.cases), len(grid.cases) - len(cases))
        for case in cases:
            progress.started(str(case))
            found = measure(case)
            results = results.keeping(found)
            results.save(path)
            progress.finished(bench.summary(found))
            # A GPU that refuses everything from now on would spoil all others.
            if reason := device_error(device):
                raise SofttargetsError(
                    f"{device} no longer answers ({reason}). What was measured is in {path}; the same command with "
                    "--resume goes on after the case that broke it"
                )
    return results


def missing(grid: BenchGrid, results: BenchResults) -> list[Any]:
    """The cases that are not there with everybody asked for: ratios are taken within one case, never across."""
    there = [item.case for item in results.measured if all(map(item.entry, grid.names(item.case)))]
    left = [case for case in grid.cases if case not in there]
    return list(grid.cases) if left and grid.together else left


def _earlier(
    nothing: BenchResults, path: Path, session: Mapping[str, Any], *, resume: bool, overwrite: bool
) -> BenchResults:
    """What to go on from: the results in this file where they may be added to, or nothing."""
    if not path.exists() or overwrite:
        return nothing
    if not resume:
        raise SofttargetsError(
            f"there are results in {path} already: add --resume to measure only what is missing, --overwrite to "
            "measure all again, or choose another directory with --out"
        )
    results = nothing.load(path)
    for before in results.sessions:
        if changed := differences(before, session):
            raise SofttargetsError(
                f"{path} was measured elsewhere ({'; '.join(changed)}): numbers of two machines or versions do not "
                "go into one file. Choose another directory with --out, or --overwrite"
            )
    return results


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """So many threads of torch inside; None leaves them as they are."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
