"""From tensors to launches: sums with their norms, embeddings, and sums over the rows of a batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.models.dropout import Dropout
from softtargets.models.kernels.launch import least_of, on_device, power_of_2
from softtargets.models.kernels.residual import (
    column_sums_kernel,
    embed_gradient_kernel,
    embed_kernel,
    residual_gradient_kernel,
    residual_kernel,
    sum_of_parts_kernel,
)

# Numbers of rows that a program of four warps holds, and one of eight, which adds up the gradients of as many rows.
HELD, HELD_BACKWARDS = 2048, 4096
# The same where only columns are added up.
SUMMED_ROWS, SUMMED_PART, SUMMED_COLUMNS = 16, 32, 128
# Of parts that are added up.
PARTS, PART_COLUMNS = 32, 64


class States(NamedTuple):
    """What a norm leaves: normalised sums (rows, width) with what scales and shifts them, and its result, low.

    Of embedded tokens there are no gains and shifts: the sums are the states.
    """

    normal: Tensor
    low: Tensor
    gains: Tensor | None = None
    shifts: Tensor | None = None


class Norm(NamedTuple):
    """What the gradient of a norm needs of it: normalised sums (rows, width), and what they were multiplied by."""

    normal: Tensor
    spreads: Tensor


class Drawing(NamedTuple):
    """How a dropout draws: from which place, which it is in its net, and what a kernel asks of a draw."""

    place: Tensor | None
    position: Tensor | None
    least: int = 0
    scale: float = 1.0

    @classmethod
    def of(cls, dropout: Dropout) -> Drawing:
        """Of a dropout in training that has a place to draw from, or drops nothing."""
        if dropout.p == 0:
            return cls(None, None)
        return cls(dropout.place, dropout.position, least_of(dropout.p), 1 / (1 - dropout.p))

    @property
    def sliced(self) -> bool:
        """Whether other processes have rows of the batch before these."""
        return self.place is not None and len(self.place) > 3


def add_and_norm(
    before: States,
    branch: Tensor,
    drawing: Drawing,
    gains: Tensor,
    shifts: Tensor,
    eps: float,
    length: int,
) -> tuple[States, Norm]:
    """norm(states + dropout(branch)), of sentences with so many places."""
    rows, width = branch.shape
    normal, low = torch.empty_like(before.normal), torch.empty_like(branch)
    spreads = torch.empty(rows, device=branch.device)
    numbers = numbers_of(width, drawing)
    with on_device(branch):
        residual_kernel[(-(-rows // numbers["ROWS"]),)](
            before.normal, before.gains, before.shifts, branch, drawing.place, drawing.position, gains, shifts,
            normal, low, spreads, rows, eps, drawing.least, drawing.scale, length * width // 4, **numbers
        )  # fmt: skip
    return States(normal, low, gains, shifts), Norm(normal, spreads)


def gradients_before(
    of_states: Tensor | None,
    of_low: Tensor,
    norm: Norm,
    gains: Tensor,
    drawing: Drawing,
    partials: Tensor,
    length: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of the states before, float32, and of the branch; sums over rows are left in `partials`."""
    rows, width = norm.normal.shape
    before, branch = torch.empty_like(norm.normal), torch.empty_like(of_low)
    numbers = numbers_of(width, drawing, backwards=True)
    with on_device(before):
        residual_gradient_kernel[(programs_of(rows, width),)](
            of_states, of_low, norm.normal, norm.spreads, gains, drawing.place, drawing.position,
            before, branch, partials, rows, drawing.least, drawing.scale, length * width // 4, **numbers
        )  # fmt: skip
    return before, branch


def programs_of(rows: int, width: int) -> int:
    """How many programs add up gradients of norms."""
    own: int = numbers_of(width, Drawing(None, None), backwards=True)["ROWS"]
    return -(-rows // own)


def embedded(
    tokens: Tensor, table: Tensor, waves: Tensor, drawing: Drawing, factor: float, dtype: torch.dtype
) -> States:
    """dropout(factor * embedding + waves) of tokens (sentences, places)."""
    rows, width = tokens.numel(), table.shape[1]
    states = torch.empty(rows, width, device=table.device)
    low = torch.empty(rows, width, device=table.device, dtype=dtype)
    length = tokens.shape[1]
    numbers = numbers_of(width, drawing)
    with on_device(table):
        embed_kernel[(-(-rows // numbers["ROWS"]),)](
            tokens, table, waves, drawing.place, drawing.position, states, low, rows, length, factor,
            drawing.least, drawing.scale, length * width // 4, **numbers
        )  # fmt: skip
    return States(states, low)


def gradient_of_embedded(
    of_states: Tensor, of_low: Tensor, drawing: Drawing, factor: float, length: int, into: Tensor
) -> None:
    """Write the gradient of every row that was looked up, (rows, width), float32."""
    rows, width = of_states.shape
    numbers = numbers_of(width, drawing)
    with on_device(into):
        embed_gradient_kernel[(-(-rows // numbers["ROWS"]),)](
            of_states, of_low, drawing.place, drawing.position, into, rows, factor,
            drawing.least, drawing.scale, length * width // 4, **numbers
        )  # fmt: skip


def partial_sums(
    matrix: Tensor,
    partials: Tensor,
    seen: Tensor | None = None,
    tokens: Tensor | None = None,
    only: int = 0,
) -> None:
    """Leave the sums of columns in `partials` (programs, columns).

    If a ReLU has given what is `seen`, its gradient is put to 0 where that is nothing, in place. With `tokens` (rows,),
    `only` the rows of one of them count.
    """
    rows, count = matrix.shape
    with on_device(matrix):
        column_sums_kernel[(parts_of(rows), -(-count // SUMMED_COLUMNS))](
            matrix, seen, tokens, partials, rows, count, only,
            ROWS=SUMMED_ROWS, PART=SUMMED_PART, COLUMNS=SUMMED_COLUMNS, num_warps=4
        )  # fmt: skip


def sum_of_rows(matrix: Tensor, tokens: Tensor, only: int, into: Tensor) -> None:
    """Add up the rows (rows, columns) of one of the tokens (rows,), in parts: there may be very many."""
    rows, count = matrix.shape
    partials = torch.empty(1, parts_of(rows), count, device=matrix.device)
    partial_sums(matrix, partials, tokens=tokens, only=only)
    sums_of(partials, into=into.unsqueeze(0))


def parts_of(rows: int) -> int:
    """How many programs add up columns of so many rows."""
    return -(-rows // SUMMED_PART)


def sums_of(partials: Tensor, into: Tensor | None = None) -> Tensor:
    """(layers, parts, columns) added up to (layers, columns)."""
    layers, parts, count = partials.shape
    sums = torch.empty(layers, count, device=partials.device) if into is None else into
    with on_device(partials):
        sum_of_parts_kernel[(layers, -(-count // PART_COLUMNS))](
            partials, sums, parts, count, AT_A_TIME=PARTS, COLUMNS=PART_COLUMNS, num_warps=4
        )
    return sums


def numbers_of(width: int, drawing: Drawing, backwards: bool = False) -> dict[str, Any]:
    """What kernels of rows are compiled for."""
    wide = power_of_2(width)
    held, warps = (HELD_BACKWARDS, 8) if backwards else (HELD, 4)
    rows = max(1, min(16, held // wide))
    return {"SLICED": drawing.sliced, "WIDTH": width, "WIDE": wide, "ROWS": rows, "num_warps": warps}
