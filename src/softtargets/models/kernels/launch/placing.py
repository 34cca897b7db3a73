"""What all launches need."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def power_of_2(number: int) -> int:
    """The smallest that is not smaller.

    >>> power_of_2(3), power_of_2(4)
    (4, 4)
    """
    return 1 << (number - 1).bit_length()


def on_device(tensor: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be that of the tensor."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
