"""Whether kernels can be made on this machine, and how large they may be."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Kernels are written with tuples, which Triton knows since this version, the one that comes with torch 2.7.
OLDEST = (3, 3)


def has_triton() -> bool:
    """Whether there is a Triton that knows what our kernels are written with; on Windows there may be none.

    It is not imported, which takes a while. Ask once, where a module is imported: what is compiled cannot ask.
    """
    for name in ("triton", "pytorch-triton", "triton-windows"):
        try:
            major, minor = importlib.metadata.version(name).split(".")[:2]
        except importlib.metadata.PackageNotFoundError:
            continue
        return (int(major), int(minor)) >= OLDEST
    return False


def has_room(device: torch.device, needed: int) -> bool:
    """Whether a program on this device may have so many bytes of shared memory; Triton's interpreter knows no limit."""
    if device.type != "cuda":
        return True
    import torch

    return getattr(torch.cuda.get_device_properties(device), "shared_memory_per_block_optin", 0) >= needed
