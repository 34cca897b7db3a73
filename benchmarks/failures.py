"""When a contestant breaks: what to write down, and whether the device survived."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import ModuleType
from typing import TypeVar

import torch

from benchmarks.results import CaseEntry

LONGEST = 240
E = TypeVar("E", bound=CaseEntry)


class Stated(Exception):
    """Words that say everything: there is nothing to explain."""


class Absent(Stated):
    """There is nothing to measure, and nobody's mistake: not installed, or no such loss over there."""


def explain(error: BaseException) -> str:
    """One line for a table.

    >>> explain(RuntimeError("no such kernel\\n  at line 3"))
    'RuntimeError: no such kernel'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Stated):
        return lines[0]
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "not enough memory" in str(error):
        return "out of memory"
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def verdict(error: BaseException) -> tuple[str, str]:
    """The status of whoever raised this, and the reason."""
    return "absent" if isinstance(error, Absent) else "failed", explain(error)


def admit(
    names: Iterable[str], enter: Callable[[str], E], kind: type[E], device: torch.device
) -> tuple[dict[str, E], str]:
    """Everybody's entry, one after the other, and why the device no longer answers (empty while it does).

    Whoever breaks is written down with the reason; after one that took the device along nobody else is tried.
    """
    found: dict[str, E] = {}
    dead = ""
    for name in names:
        if dead:
            found[name] = kind(name, "failed", f"not run: the device had failed before ({dead})")
            continue
        try:
            found[name] = enter(name)
        except Exception as error:
            found[name] = kind(name, *verdict(error))
        if found[name].status == "failed":
            release(device)
        dead = device_error(device)
    return found, dead


def installed(module: str, package: str = "", title: str = "") -> ModuleType:
    """A module of a rival; `Absent` where its package is not installed."""
    top = module.partition(".")[0]
    package = package or top
    if importlib.util.find_spec(top) is None:
        raise Absent(f"{title or package} is not installed (pip install {package})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts of it that nobody here uses
        return importlib.import_module(module)


def device_error(device: torch.device) -> str:
    """Empty while the device answers. After some errors a GPU refuses everything until the process ends."""
    if device.type != "cuda":
        return ""
    try:
        torch.cuda.synchronize(device)
        torch.ones(1, device=device).add(1).item()
    except Exception as error:
        return explain(error)
    return ""


def release(device: torch.device) -> None:
    """Give cached memory back, so that one contestant's leftovers do not make the next one fail."""
    if device.type == "cuda":
        gc.collect()  # what broke may hold on to tensors in circles
        # A GPU that refuses everything has nothing to give back; `device_error` is there to notice.
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
