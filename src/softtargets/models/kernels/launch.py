"""From tensors to launches of the kernels: shapes and block sizes."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import has_room
from softtargets.models.kernels.convolution import (
    convolution_kernel,
    part_sum_kernel,
    weight_gradient_kernel,
)
from softtargets.models.kernels.dropout import dropout_kernel
from softtargets.models.kernels.look_up import order_kernel, table_gradient_kernel
from softtargets.models.kernels.pooling import max_pool_gradient_kernel, max_pool_kernel
from softtargets.models.kernels.response_norm import norm_kernel

# Bytes of shared memory that the largest programs take, 144 KiB: GPUs for computing have them, those for games smaller
# programs.
LARGEST_SHARED = 144 * 1024
# Numbers that one program makes of maxima.
POOL_BLOCK = 1024
# Places whose channels one program normalises.
NORM_ROWS = 64
# Draws of one program of dropout, each for four numbers.
DRAWS = 512
# Places that one program of the gradient of a table adds up at a time, and columns of its row.
PLACES, COLUMNS = 32, 128
# So many places are put in order by comparing all with all, some of them with some others at a time.
MOST_COMPARED, OWN, OTHERS = 2**14, 8, 256


# --- convolutions and their gradients ---


class Tiles(NamedTuple):
    """How the work of a product is cut up."""

    rows: int
    columns: int
    depth: int
    warps: int
    stages: int
    part: int = 0  # weight gradient: rows summed up by one program


class Shape(NamedTuple):
    """A convolution: maps in, maps out, and the kernel between them."""

    height: int
    width: int
    channels: int
    new_height: int
    new_width: int
    new_channels: int
    kernel: int
    stride: int
    padding: int

    @classmethod
    def of(cls, maps: Tensor, weights: Tensor, stride: int, padding: int) -> Shape:
        """Of maps (runs, images, height, width, channels) and weights (runs, new channels, channels, k, k)."""
        _, _, height, width, channels = maps.shape
        new_channels, kernel = weights.shape[1], weights.shape[-1]
        new_height, new_width = ((size + 2 * padding - kernel) // stride + 1 for size in (height, width))
        return cls(height, width, channels, new_height, new_width, new_channels, kernel, stride, padding)


# What measured best on an H200, alone and with 16 runs. Nothing may depend on how many runs there are, or their results
# would.
@lru_cache(maxsize=1024)
def product_tiles(channels: int, new_channels: int, taps: int, room: bool = True) -> Tiles:
    """For results and gradients of maps, where there is `room` for the largest programs."""
    columns = max(16, min(128, power_of_2(new_channels)))
    if channels % 16:
        return Tiles(128, columns, max(16, min(128, power_of_2(taps * channels))), 4, 2)
    if channels % 64:
        return Tiles(128, columns, 32 if channels % 32 == 0 else 16, 4, 4)
    return Tiles(64, columns, 128, 4, 4) if channels >= 512 and room else Tiles(128, columns, 64, 4, 3)


@lru_cache(maxsize=1024)
def gradient_tiles(rows: int, channels: int, new_channels: int, taps: int) -> Tiles:
    """For gradients of weights, summed over so many rows."""
    columns = max(16, min(128, power_of_2(new_channels)))
    deep = power_of_2(taps * channels)
    if deep <= 16:
        return Tiles(128, columns, 16, 4, 3, 1024 if rows > 65536 else 512)
    depth = 128 if taps * channels >= 1024 else min(64, deep)
    return Tiles(64, columns, depth, 4, 3, 2048 if rows > 65536 and deep > 64 else 1024)


def convolve(
    maps: Tensor,
    weights: Tensor,
    stride: int,
    padding: int,
    tiles: Tiles | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """The convolution of maps with float32 weights (runs, new channels, channels, k, k), in the maps' precision.

    A bias is (runs, new channels).
    """
    shape = Shape.of(maps, weights, stride, padding)
    runs, images = maps.shape[:2]
    results = maps.new_empty(runs, images, shape.new_height, shape.new_width, shape.new_channels)
    laid = _laid(weights, (0, 3, 4, 2, 1), maps.dtype)
    tiles = tiles or product_tiles(shape.channels, shape.new_channels, shape.kernel**2, has_much(maps))
    product(maps, laid, bias, results, shape, False, tiles)
    return results


def gradient_of_maps(
    upstream: Tensor,
    weights: Tensor,
    height: int,
    width: int,
    stride: int,
    padding: int,
    tiles: Tiles | None = None,
) -> Tensor:
    """The gradient with respect to the maps that were `height` x `width`."""
    runs, images, new_height, new_width, new_channels = upstream.shape
    channels, kernel = weights.shape[2], weights.shape[-1]
    gradient = upstream.new_empty(runs, images, height, width, channels)
    laid = _laid(weights, (0, 3, 4, 1, 2), upstream.dtype)
    # The roles change: what is read is the upstream gradient.
    shape = Shape(new_height, new_width, new_channels, height, width, channels, kernel, stride, padding)
    tiles = tiles or product_tiles(new_channels, channels, kernel**2, has_much(upstream))
    product(upstream, laid, None, gradient, shape, True, tiles)
    return gradient


def gradient_of_weights(
    maps: Tensor, upstream: Tensor, kernel: int, stride: int, padding: int, tiles: Tiles | None = None
) -> Tensor:
    """The gradient with respect to the weights, float32 (runs, new channels, channels, k, k)."""
    return gradients_of_layer(maps, upstream, kernel, stride, padding, False, tiles)[0]


def gradients_of_layer(
    maps: Tensor,
    upstream: Tensor,
    kernel: int,
    stride: int,
    padding: int,
    biased: bool,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor]:
    """The same and, if it is `biased`, the gradient with respect to the bias, float32 (runs, new channels)."""
    runs, images, height, width, channels = maps.shape
    _, _, new_height, new_width, new_channels = upstream.shape
    shape = Shape(height, width, channels, new_height, new_width, new_channels, kernel, stride, padding)
    rows, deep = images * new_height * new_width, kernel * kernel * channels
    tiles = tiles or gradient_tiles(rows, channels, new_channels, kernel**2)
    parts = -(-rows // tiles.part)
    partials = torch.empty(runs, parts, deep, new_channels, device=maps.device)
    bias_partials = torch.empty(runs, parts, new_channels, device=maps.device) if biased else None
    gradients = torch.empty(runs, new_channels, channels, kernel, kernel, device=maps.device)
    of_bias = torch.empty(runs, new_channels if biased else 0, device=maps.device)
    with on_device(maps):
        down, across = -(-deep // tiles.depth) + biased, -(-new_channels // tiles.columns)
        weight_gradient_kernel[(runs * parts, down, across)](
            maps,
            upstream,
            partials,
            bias_partials,
            rows,
            parts,
            PART=tiles.part,
            **numbers_of(shape, tiles, maps),
        )
        _add_parts(partials, gradients, channels, kernel * kernel)
        if bias_partials is not None:
            _add_parts(bias_partials, of_bias, 1, 1)
    return gradients, of_bias


def _add_parts(partials: Tensor, gradients: Tensor, channels: int, taps: int) -> None:
    runs, parts, new_channels, block = *partials.shape[:2], partials.shape[-1], 128
    part_sum_kernel[(runs, -(-taps * channels * new_channels // block))](
        partials,
        gradients,
        parts,
        CHANNELS=channels,
        NEW_CHANNELS=new_channels,
        TAPS=taps,
        BLOCK=block,
        AT_A_TIME=8,
        num_warps=4,
    )


class Ending(NamedTuple):
    """What else becomes of the results of a product before they are written, in one net: see `convolution_kernel`."""

    added: Tensor | None = None
    added_norm: Tensor | None = None
    before: Tensor | None = None
    norm: Tensor | None = None
    sums: Tensor | None = None


NO_ENDING = Ending()


def product(
    maps: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    results: Tensor,
    shape: Shape,
    backwards: bool,
    tiles: Tiles,
    ending: Ending = NO_ENDING,
    fold: int = 1,
) -> None:
    """Maps times weights that are laid as the kernel reads them."""
    runs, images = maps.shape[:2]
    rows = images * shape.new_height * shape.new_width
    numbers = numbers_of(shape, tiles, maps) | {"BACKWARDS": backwards, "FOLD": fold}
    with on_device(maps):
        convolution_kernel[(runs * -(-rows // tiles.rows), -(-shape.new_channels // tiles.columns))](
            maps, weights, bias, *ending, results, rows, **numbers
        )


def numbers_of(shape: Shape, tiles: Tiles, maps: Tensor) -> dict[str, Any]:
    """What both kernels of products are compiled for."""
    return {
        **{name.upper(): number for name, number in shape._asdict().items()},
        "ROWS": tiles.rows,
        "COLUMNS": tiles.columns,
        "DEPTH": tiles.depth,
        "PRECISION": "ieee" if maps.dtype == torch.float32 else "tf32",
        "num_warps": tiles.warps,
        "num_stages": tiles.stages,
    }


def _laid(weights: Tensor, order: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """The weights in the precision and the order in which a kernel reads them; one copy."""
    turned = weights.permute(order)
    return torch.empty(turned.shape, dtype=dtype, device=weights.device).copy_(turned)


# --- maxima over windows, and their gradient ---


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
    height, width, channels = maps.shape[-3:]
    sizes = {"HEIGHT": height, "WIDTH": width, "CHANNELS": channels, "BLOCK": POOL_BLOCK}
    return sizes | {name.upper(): number for name, number in pooling._asdict().items()}


# --- local response normalisation, and its gradient ---


def normalise(maps: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    """Local response normalisation over the last dimension of a dense tensor."""
    return _norm(maps, None, radius, bias, alpha, beta)


def gradient_of_norm(
    maps: Tensor, upstream: Tensor, radius: int, bias: float, alpha: float, beta: float
) -> Tensor:
    """The gradient of `normalise`."""
    return _norm(maps, upstream, radius, bias, alpha, beta)


def _norm(maps: Tensor, upstream: Tensor | None, radius: int, *numbers: float) -> Tensor:
    results = torch.empty_like(maps)
    channels = maps.shape[-1]
    rows = maps.numel() // channels
    with on_device(maps):
        norm_kernel[(-(-rows // NORM_ROWS),)](
            maps,
            upstream,
            results,
            rows,
            *numbers,
            CHANNELS=channels,
            RADIUS=radius,
            ROWS=NORM_ROWS,
            WIDE=max(16, power_of_2(channels)),
            SPLIT=maps.dtype == torch.bfloat16,
            num_warps=4,
        )
    return results


# --- dropout, which is its own gradient ---


def drop(activations: Tensor, place: Tensor, position: Tensor, p: float) -> Tensor:
    """Dense activations times 0 or 1 / (1 - p), as `softtargets.models.Dropout` draws them."""
    results = torch.empty_like(activations)
    count = activations.numel()
    with on_device(activations):
        dropout_kernel[(-(-count // (4 * DRAWS)),)](
            activations, results, place, position, count, least_of(p), 1 / (1 - p), count // activations.shape[0] // 4,
            SLICED=len(place) > 3, BLOCK=DRAWS, num_warps=4
        )  # fmt: skip
    return results


def least_of(p: float) -> int:
    """The upper 24 bits that a word must have for a number to be kept.

    That is, uniform >= p in single precision, where a uniform number is 24 bits of a word.
    """
    return math.ceil(float(np.float32(p)) * 2**24)


# --- tables ---


def gradient_of_table(upstream: Tensor, rows: Tensor, count: int, apart: int = -1) -> Tensor:
    """The gradient (count, D) of a table whose `rows` (places,) were looked up, of what comes back, (places, D).

    A row's places are added up in one order; it does not matter which others there are. The row `apart` is left to the
    caller, who knows that it has very many places, which one program would take long to go through.
    """
    width = upstream.shape[-1]
    gradient = upstream.new_empty(count, width)
    upstream = upstream.contiguous()
    sorted_rows, order = _in_order(rows, count)
    begins = torch.searchsorted(sorted_rows, torch.arange(count + 1, device=rows.device))
    with on_device(upstream):
        table_gradient_kernel[(count, -(-width // COLUMNS))](
            upstream, order, begins, gradient, width, apart, PLACES=PLACES, BLOCK=COLUMNS, num_warps=4
        )
    return gradient


def _in_order(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Numbers below `count` from the smallest to the largest, and their places; those of one number as they come."""
    places = len(rows)
    if not rows.is_cuda or places > MOST_COMPARED or places * count >= 2**31:
        ordered, order = rows.sort(stable=True)
        return ordered, order
    return in_order(rows)


def in_order(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The same by our kernel."""
    rows = rows.contiguous()
    ordered, order = torch.empty_like(rows), torch.empty_like(rows)
    with on_device(rows):
        order_kernel[(-(-len(rows) // OWN),)](
            rows, order, ordered, len(rows), OWN=OWN, OTHERS=OTHERS, num_warps=4
        )
    return ordered, order


def power_of_2(number: int) -> int:
    """The smallest that is not smaller."""
    return 1 << (number - 1).bit_length()


def has_much(tensor: Tensor) -> bool:
    """Whether the device of a tensor has room for the largest programs."""
    return has_room(tensor.device, LARGEST_SHARED)


def on_device(tensor: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be that of the tensor."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()
