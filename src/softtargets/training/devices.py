"""Which device trains, and how much memory it has left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from softtargets.exceptions import SofttargetsError


def choose_device(name: str) -> torch.device:
    """The device for ``auto``, ``cpu``, ``cuda`` or ``cuda:1``, checked to exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SofttargetsError(
            f"there is no device '{name}'; allowed: auto, cpu, cuda, cuda:0, ..."
        ) from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SofttargetsError(
            f"there is no device '{name}' here: torch sees {torch.cuda.device_count()} CUDA devices; allowed: auto, "
            "cpu, or a device that torch sees"
        )
    if device.type not in ("cpu", "cuda"):
        raise SofttargetsError(f"device '{name}' is not supported; allowed: auto, cpu, cuda, cuda:0, ...")
    return device


@contextmanager
def no_default_device() -> Iterator[None]:
    """Tensors are made where torch makes them unless told otherwise, whatever the caller's program has set."""
    before = torch.empty(0).device  # torch 2.6 cannot tell its default once it was taken back
    if before == torch.device("cpu"):
        yield
        return
    torch.set_default_device(None)
    try:
        yield
    finally:
        torch.set_default_device(before)


def free_memory(device: torch.device) -> int | None:
    """Bytes that a training may take on a device; None if nobody can tell."""
    if device.type != "cuda":
        return _free_here()
    free, _ = torch.cuda.mem_get_info(device)
    # Torch holds on to what earlier packs have left, and gives it to the next.
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def _free_here() -> int | None:
    """The memory of this machine that programs may still take."""
    try:
        # What the system has put aside for files is free too, and only Linux says so.
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except OSError:
        pass
    try:
        pages, size = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # other systems
        return None
    return pages * size if pages > 0 and size > 0 else None
