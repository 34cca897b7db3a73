"""From tensors to launches: linear layers and their gradients, and sums over the rest of a stack."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from softtargets.models.kernels.launch import Tiles, has_much, on_device, power_of_2
from softtargets.models.kernels.linear import product_kernel
from softtargets.models.kernels.sums import sum_kernel

# Numbers that one program adds up, and how many at a time.
PART, BLOCK = 8192, 1024


# How many programs keep a GPU busy: below, smaller tiles make more of them.
MANY = 256
# How products of float32 are computed where a recipe asks for all of its bits: by three products of tf32 on tensor
# cores, nearer to the truth than float32 itself, or in float32; what measured faster on an H200.
IN_THREE, IN_FULL = "tf32x3", "ieee"


# What measured best on an H200, for a run alone and for 128. Sums go from the first to the last whatever the tile, so
# that how many runs there are may decide about tiles and nothing else; a test on a GPU compares the bits.
@lru_cache(maxsize=1024)
def linear_tiles(
    runs: int, rows: int, deep: int, columns: int, itemsize: int = 2, room: bool = True
) -> Tiles:
    """For products (runs, rows, deep) x (runs, deep, columns), where there is `room` for the largest programs."""
    wide, depth = max(16, min(128, power_of_2(columns))), max(16, min(64, power_of_2(deep)))
    few = runs * -(-rows // 128) * -(-columns // wide) < MANY
    if itemsize > 2:  # in three products the depth decides about the bits as well
        return Tiles(64, min(wide, 32), depth, 4, 3) if few else Tiles(128, wide, depth, 8, 3 if room else 2)
    if wide <= 16:
        return Tiles(64, wide, max(depth, min(128, power_of_2(deep))), 4, 3)
    if few:
        return Tiles(64, min(wide, 64), depth, 4, 3)
    return Tiles(128, wide, depth, 8 if wide == 128 else 4, 3)


@lru_cache(maxsize=1024)
def linear_gradient_tiles(
    runs: int, rows: int, deep: int, columns: int, itemsize: int = 2, room: bool = True
) -> Tiles:
    """For gradients of weights: so many inputs by outputs, summed over the rows of a batch, which are few."""
    if itemsize > 2:
        return Tiles(64, max(16, min(64, power_of_2(columns))), max(16, min(32, power_of_2(deep))), 4, 2)
    if columns <= 16:
        return linear_tiles(runs, rows, deep, columns, itemsize, room)
    wide, depth = max(16, min(128, power_of_2(columns))), max(16, min(128, power_of_2(deep)))
    if runs * -(-rows // 128) * -(-columns // wide) < MANY:
        return Tiles(64, min(wide, 64), depth, 4, 3)
    return Tiles(64, wide, min(depth, 32), 4, 3)


def linear(rows: Tensor, weights: Tensor, bias: Tensor | None, tiles: Tiles | None = None) -> Tensor:
    """Rows (runs, rows, inputs) times weights (runs, outputs, inputs), plus a bias (runs, outputs)."""
    results = rows.new_empty(*rows.shape[:2], weights.shape[1])
    tiles = tiles or _tiles(linear_tiles, rows, results)
    _multiply(rows, weights.transpose(1, 2), results, bias, None, tiles, IN_THREE)
    return results


def gradient_of_rows(upstream: Tensor, weights: Tensor, tiles: Tiles | None = None) -> Tensor:
    """The gradient with respect to the rows."""
    results = upstream.new_empty(*upstream.shape[:2], weights.shape[2])
    left, right, made = upstream, weights, results
    if upstream.dtype == torch.float32:
        # The other way round: tensor cores read the right matrix from memory, in 32 bits only along the sum.
        left, right, made = (matrix.transpose(1, 2) for matrix in (weights, upstream, results))
    _multiply(left, right, made, None, None, tiles or _tiles(linear_tiles, left, made), IN_THREE)
    return results


def gradients_of_weights(
    rows: Tensor, upstream: Tensor, weights: Tensor, biased: bool, tiles: Tiles | None = None
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to the weights, in their precision and as they lie in memory, and to the bias."""
    gradients = torch.empty_like(weights)
    of_bias = torch.empty(len(rows), upstream.shape[-1] if biased else 0, device=rows.device)
    left, turned = rows.transpose(1, 2), gradients.transpose(1, 2)
    if rows.dtype == torch.float32 and not _all_bits(rows):
        # Turned around first, since tensor cores read 32 bits only along the sum.
        left, upstream = left.contiguous(), upstream.transpose(1, 2).contiguous().transpose(1, 2)
    tiles = tiles or _tiles(linear_gradient_tiles, left, turned)
    _multiply(left, upstream, turned, None, of_bias if biased else None, tiles, IN_FULL)
    return gradients, of_bias


def _tiles(choose: Callable[..., Tiles], left: Tensor, results: Tensor) -> Tiles:
    return choose(*left.shape, results.shape[-1], left.element_size(), has_much(left))


def _all_bits(matrix: Tensor) -> bool:
    return matrix.dtype == torch.float32 and torch.get_float32_matmul_precision() == "highest"


def _multiply(
    left: Tensor,
    right: Tensor,
    results: Tensor,
    bias: Tensor | None,
    sums: Tensor | None,
    tiles: Tiles,
    in_full: str,
) -> None:
    runs, rows, deep = left.shape
    columns = right.shape[-1]
    down, across = -(-rows // tiles.rows), -(-columns // tiles.columns)
    programs = down * across + (across if sums is not None else 0)
    with on_device(left):
        product_kernel[(runs * programs,)](
            left,
            right,
            bias,
            results,
            sums,
            rows,
            *left.stride(),
            *right.stride(),
            *results.stride(),
            DEEP=deep,
            WIDE=columns,
            ROWS=tiles.rows,
            COLUMNS=tiles.columns,
            DEPTH=tiles.depth,
            PRECISION=in_full if _all_bits(left) else "tf32",
            num_warps=tiles.warps,
            num_stages=tiles.stages,
        )


def sums(values: Tensor, squared: bool = False) -> Tensor:
    """Of all numbers of each run, (runs, count) to (runs,), or of their squares; in single precision at least."""
    kept = torch.promote_types(values.dtype, torch.float32)
    values = values.contiguous()
    runs, count = values.shape
    if count == 0:
        return torch.zeros(runs, dtype=kept, device=values.device)
    parts = -(-count // PART)
    block = max(16, min(BLOCK, power_of_2(count)))
    results = torch.empty(runs, parts, dtype=kept, device=values.device)
    with on_device(values):
        sum_kernel[(runs * parts,)](
            values,
            results,
            count,
            parts,
            PART=PART if parts > 1 else -(-count // block) * block,
            BLOCK=block,
            SQUARED=squared,
            num_warps=4,
        )
    return results.squeeze(1) if parts == 1 else sums(results)
