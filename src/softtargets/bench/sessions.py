"""Where results lie, and whether one session may go on where another stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from softtargets.bench.failing import device_error
from softtargets.bench.files import Stored
from softtargets.bench.machine import differences
from softtargets.exceptions import SofttargetsError

RESULTS = "results.json"


Results = TypeVar("Results", bound=Stored)


def directory_for(bench: str, device: torch.device) -> Path:
    """``benchmarks/losses/nvidia-h200``: one place per bench and kind of device."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    return Path("benchmarks") / bench / (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "device")


def earlier(
    path: Path,
    session: Mapping[str, Any],
    load: Callable[[Path], Results],
    nothing: Results,
    *,
    resume: bool,
    overwrite: bool,
) -> Results:
    """What to go on from: the results in this file where they may be added to, or nothing."""
    if not path.exists() or overwrite:
        return nothing
    if not resume:
        raise SofttargetsError(
            f"there are results in {path} already: add --resume to measure only what is missing, --overwrite to "
            "measure all again, or choose another directory with --out"
        )
    results = load(path)
    for before in results.sessions:
        if changed := differences(before, session):
            raise SofttargetsError(
                f"{path} was measured elsewhere ({'; '.join(changed)}): numbers of two machines or versions do not "
                "go into one file. Choose another directory with --out, or --overwrite"
            )
    return results


def keep(results: Results, section: str, found: Any, path: Path) -> Results:
    """The results with one more, in the place of an earlier one of the same case, and on disk."""
    others = (old for old in getattr(results, section) if old.case != found.case)
    results = replace(results, **{section: (*others, found)})
    results.save(path)
    return results


def still_there(device: torch.device, path: Path) -> None:
    """After a case: a GPU that refuses everything from now on would spoil all others."""
    if reason := device_error(device):
        raise SofttargetsError(
            f"{device} no longer answers ({reason}). What was measured is in {path}; the same command with --resume "
            "goes on after the case that broke it"
        )
