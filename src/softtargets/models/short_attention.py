"""Attention over short sentences on a GPU: one operation for all that lies between two linear layers.

To the compiler these are operations that it cannot look into. They read what the layer before has made where it lies,
(N, T, parts * width), and give its gradient back as a whole: nothing is taken apart, turned around or put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softtargets.arrays import has_triton

if TYPE_CHECKING:
    from softtargets.models.kernels.attending import Parts

HAS_KERNELS = has_triton()
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
SIZES = (16, 32, 64, 128)  # of a head
# All keys of a sentence are held at once: so many at most, which take so many bytes at most, since a program has little
# room on some GPUs (100 KiB on those for games and graphics).
MOST_KEYS, MOST_BYTES = 128, 2**14


def takes(queries: Tensor, keys: Tensor, size: int) -> bool:
    """Whether sentences with projections like these, (N, T, ...), and heads of this size, are short enough."""
    if (
        not (keys.is_cuda and HAS_KERNELS)
        or queries.dtype != keys.dtype
        or keys.dtype not in DTYPES
        or size not in SIZES
    ):
        return False
    return keys.shape[1] <= min(MOST_BYTES // (size * keys.element_size()), MOST_KEYS)


# --- operators ---


@torch.library.custom_op("softtargets::self_attention", mutates_args=())
def self_attention(projected: Tensor, seen: Tensor | None, heads: int, causal: bool) -> Tensor:
    """Queries, keys and values of every place side by side, (N, T, 3 * width), to what each finds, (N, T, width).

    Where `seen` (N, 1, 1, T) is False keys are not looked at, and if `causal` none after the query's own. Every query
    must have a key to look at.
    """
    attending, projected = _kernels(), _readable(projected)
    found: Tensor = attending.attend(attending.Parts.of(projected), seen, heads, causal)
    return found


@torch.library.custom_op("softtargets::self_attention_gradient", mutates_args=())
def self_attention_gradient(
    upstream: Tensor, projected: Tensor, seen: Tensor | None, heads: int, causal: bool
) -> Tensor:
    """The gradient of `self_attention`, (N, T, 3 * width)."""
    attending, projected = _kernels(), _readable(projected)
    gradient = projected.new_empty(projected.shape)
    parts, into = attending.Parts.of(projected), attending.Parts.of(gradient)
    attending.gradients_of_attention(upstream, parts, seen, heads, causal, into)
    return gradient


@torch.library.custom_op("softtargets::cross_attention", mutates_args=())
def cross_attention(queries: Tensor, remembered: Tensor, seen: Tensor | None, heads: int) -> Tensor:
    """Queries (N, T, width), with keys and values of another sentence side by side, (N, S, 2 * width)."""
    found: Tensor = _kernels().attend(_of_two(queries, remembered), seen, heads, False)
    return found


@torch.library.custom_op("softtargets::cross_attention_gradient", mutates_args=())
def cross_attention_gradient(
    upstream: Tensor, queries: Tensor, remembered: Tensor, seen: Tensor | None, heads: int
) -> tuple[Tensor, Tensor]:
    """The gradients of `cross_attention` with respect to queries, and to what was remembered."""
    attending = _kernels()
    found = queries.new_empty(queries.shape), remembered.new_empty(remembered.shape)
    into = attending.Parts.of_two(*found)
    attending.gradients_of_attention(upstream, _of_two(queries, remembered), seen, heads, False, into)
    return found


def _kernels() -> Any:
    from softtargets.models.kernels import attending  # Triton, which not every machine has

    return attending


def _readable(values: Tensor) -> Tensor:
    readable: Tensor = _kernels().readable(values)
    return readable


def _of_two(queries: Tensor, remembered: Tensor) -> Parts:
    parts: Parts = _kernels().Parts.of_two(_readable(queries), _readable(remembered))
    return parts


# --- shapes ---


@self_attention.register_fake
def _(projected: Tensor, seen: Tensor | None, heads: int, causal: bool) -> Tensor:
    return projected.new_empty(*projected.shape[:2], projected.shape[2] // 3)


@self_attention_gradient.register_fake
def _(upstream: Tensor, projected: Tensor, seen: Tensor | None, heads: int, causal: bool) -> Tensor:
    return projected.new_empty(projected.shape)


@cross_attention.register_fake
def _(queries: Tensor, remembered: Tensor, seen: Tensor | None, heads: int) -> Tensor:
    return queries.new_empty(queries.shape)


@cross_attention_gradient.register_fake
def _(
    upstream: Tensor, queries: Tensor, remembered: Tensor, seen: Tensor | None, heads: int
) -> tuple[Tensor, Tensor]:
    return queries.new_empty(queries.shape), remembered.new_empty(remembered.shape)


# --- gradients ---


def _keep_self(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    projected, seen, ctx.heads, ctx.causal = inputs
    ctx.save_for_backward(projected, seen)


def _self_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    return self_attention_gradient(upstream, *ctx.saved_tensors, ctx.heads, ctx.causal), None, None, None


def _keep_cross(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    queries, remembered, seen, ctx.heads = inputs
    ctx.save_for_backward(queries, remembered, seen)


def _cross_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    return *cross_attention_gradient(upstream, *ctx.saved_tensors, ctx.heads), None, None


self_attention.register_autograd(_self_backward, setup_context=_keep_self)
cross_attention.register_autograd(_cross_backward, setup_context=_keep_cross)


# --- stacks of nets: more sentences, which know nothing of each other ---


def _vmapped(operator: Any, tensors: int) -> Any:
    """A rule for an operator that takes so many tensors before its numbers."""

    def rule(info: Any, dims: tuple[int | None, ...], *given: Any) -> Any:
        runs = info.batch_size
        stacked = [
            None if values is None else _with_runs(values, dim, runs).flatten(0, 1)
            for values, dim in zip(given[:tensors], dims, strict=False)
        ]
        found = operator(*stacked, *given[tensors:])
        if isinstance(found, Tensor):
            return found.unflatten(0, (runs, -1)), 0
        return tuple(each.unflatten(0, (runs, -1)) for each in found), (0,) * len(found)

    return rule


def _with_runs(values: Tensor, dim: int | None, runs: int) -> Tensor:
    return values.expand(runs, *values.shape) if dim is None else values.movedim(dim, 0)


for _operator, _tensors in (
    (self_attention, 2),
    (self_attention_gradient, 3),
    (cross_attention, 3),
    (cross_attention_gradient, 4),
):
    _operator.register_vmap(_vmapped(_operator, _tensors))
