"""From tensors to launches: linear layers and their gradients, and sums over the rest of a stack."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from softtargets.models.kernels.launch import Tiles, on_device, power_of_2
from softtargets.models.kernels.linear import product_kernel
from softtargets.models.kernels.sums import sum_kernel

# Numbers that one program adds up, and how many at a time.
PART, BLOCK = 8192, 1024


# Nothing may depend on how many runs there are, or their results would; nor on the rows, of which evaluation takes
# fewer at a time the more runs there are.
@lru_cache(maxsize=1024)
def linear_tiles(deep: int, columns: int, itemsize: int) -> Tiles:
    """For products over so many inputs, with so many columns."""
    wide, depth = max(16, min(128, power_of_2(columns))), max(16, min(64, power_of_2(deep)))
    if itemsize > 2:
        return Tiles(64, min(wide, 64), min(depth, 32), 4, 3)
    return Tiles(128, wide, depth, 8 if wide == 128 else 4, 3)


def linear(rows: Tensor, weights: Tensor, bias: Tensor | None, tiles: Tiles | None = None) -> Tensor:
    """Rows (runs, rows, inputs) times weights (runs, outputs, inputs), plus a bias (runs, outputs)."""
    results = rows.new_empty(*rows.shape[:2], weights.shape[1])
    _multiply(rows, weights.transpose(1, 2), results, bias, None, tiles)
    return results


def gradient_of_rows(upstream: Tensor, weights: Tensor, tiles: Tiles | None = None) -> Tensor:
    """The gradient with respect to the rows."""
    results = upstream.new_empty(*upstream.shape[:2], weights.shape[2])
    _multiply(upstream, weights, results, None, None, tiles)
    return results


def gradients_of_weights(
    rows: Tensor, upstream: Tensor, weights: Tensor, biased: bool, tiles: Tiles | None = None
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to the weights, in their precision and as they lie in memory, and to the bias."""
    gradients = torch.empty_like(weights)
    of_bias = torch.empty(len(rows), upstream.shape[-1] if biased else 0, device=rows.device)
    turned = gradients.transpose(1, 2)
    _multiply(rows.transpose(1, 2), upstream, turned, None, of_bias if biased else None, tiles)
    return gradients, of_bias


def _multiply(
    left: Tensor,
    right: Tensor,
    results: Tensor,
    bias: Tensor | None,
    sums: Tensor | None,
    tiles: Tiles | None,
) -> None:
    runs, rows, deep = left.shape
    columns = right.shape[-1]
    tiles = tiles or linear_tiles(deep, columns, left.element_size())
    in_full = left.dtype == torch.float32 and torch.get_float32_matmul_precision() == "highest"
    with on_device(left):
        product_kernel[(runs * -(-rows // tiles.rows) * -(-columns // tiles.columns),)](
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
            PRECISION="ieee" if in_full else "tf32",
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
