"""When a contestant breaks: what to write down, and whether the device survived."""

from __future__ import annotations

import gc
from contextlib import suppress

import torch

LONGEST = 240


class Absent(Exception):
    """There is nothing to measure, and nobody's mistake: not installed, or no such loss over there."""


def explain(error: BaseException) -> str:
    """One line for a table.

    >>> explain(RuntimeError("no such kernel\\n  at line 3"))
    'RuntimeError: no such kernel'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, Absent):
        return lines[0]
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "not enough memory" in str(error):
        return "out of memory"
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


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
