"""In which precision maps are wanted, and as our kernels want them in memory."""

from __future__ import annotations

import torch
from torch import Tensor

# Kernels count the numbers of the maps of a run in 31 bits.
MOST_NUMBERS = 2**31


def asked_for(maps: Tensor) -> torch.dtype | None:
    """The low precision that autocast asks for, if it does."""
    kind = maps.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None


def channels_last(maps: Tensor, dtype: torch.dtype) -> Tensor:
    """The same maps with the channels last, in memory as well."""
    return maps.to(dtype).permute(0, 2, 3, 1).contiguous()
