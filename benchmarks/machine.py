"""Where the numbers come from: date, versions, hardware, command."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from softtargets.runs.provenance import environment, now

# What must be the same for results to lie in one file.
DECIDING = (
    "softtargets",
    "commit",
    "uncommitted_changes",
    "python",
    "torch",
    "triton",
    "liger",
    "cut-cross-entropy",
    "cuda",
    "driver",
    "device_name",
    "processor",
    "threads",
)


def describe(device: torch.device, command: str, packages: Iterable[str] = ()) -> dict[str, Any]:
    """One session, ready for JSON; `packages` are rivals whose versions belong to it."""
    return {
        "date": now(),
        "command": command,
        **environment(str(device)),
        "triton": _version("triton", "pytorch-triton"),
        "liger": _version("liger-kernel"),
        "cuda": torch.version.cuda,
        "driver": _driver(device),
        "processor": _processor(),
        "cores": os.cpu_count(),
        **{name: _version(name) for name in packages},
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What keeps two sessions apart, in words."""
    return [
        f"{key} was {before.get(key)}, is {after.get(key)}"
        for key in DECIDING
        if before.get(key) != after.get(key)
    ]


def _version(*names: str) -> str | None:
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None


def _driver(device: torch.device) -> str | None:
    if device.type != "cuda":
        return None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(done.stdout.split()), None)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
