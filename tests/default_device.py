"""Another default device for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def default_device(device: str) -> Iterator[None]:
    """Without a trace: where it was set back to None, torch 2.9 and older cannot tell it, and transformers asks."""
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)
        del torch._GLOBAL_DEVICE_CONTEXT.device_context
