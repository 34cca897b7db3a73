"""Maxima over windows, and their gradient."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.models.kernels.launch.placing import on_device
from softtargets.models.kernels.pooling import max_pool_gradient_kernel, max_pool_kernel

# Numbers that one program makes.
POOL_BLOCK = 1024


class Pooling(NamedTuple):
    """Windows of KERNEL x KERNEL every STRIDE places, the first of which begins before the top left place."""

    kernel: int
    stride: int
    top: int
    left: int
    new_height: int
    new_width: int


def pool(maps: Tensor, pooling: Pooling) -> tuple[Tensor, Tensor]:
    """Maxima over windows of maps (..., height, width, channels), and which place of each window was the first."""
    shape = (*maps.shape[:-3], pooling.new_height, pooling.new_width, maps.shape[-1])
    results, winners = maps.new_empty(shape), maps.new_empty(shape, dtype=torch.uint8)
    with on_device(maps):
        max_pool_kernel[_pool_grid(results)](maps, results, winners, **_pool_numbers(maps, pooling))
    return results, winners


def gradient_of_pool(upstream: Tensor, winners: Tensor, height: int, width: int, pooling: Pooling) -> Tensor:
    """The gradient with respect to the maps that were `height` x `width`."""
    gradients = upstream.new_empty(*upstream.shape[:-3], height, width, upstream.shape[-1])
    with on_device(upstream):
        max_pool_gradient_kernel[_pool_grid(gradients)](
            winners, upstream, gradients, **_pool_numbers(gradients, pooling)
        )
    return gradients


def _pool_grid(maps: Tensor) -> tuple[int, int]:
    size = maps.shape[-3:].numel()
    return maps.numel() // size, -(-size // POOL_BLOCK)


def _pool_numbers(maps: Tensor, pooling: Pooling) -> dict[str, int]:
    numbers = dict(zip(("HEIGHT", "WIDTH", "CHANNELS"), maps.shape[-3:], strict=True))
    return {
        **numbers,
        **{name.upper(): number for name, number in pooling._asdict().items()},
        "BLOCK": POOL_BLOCK,
    }
