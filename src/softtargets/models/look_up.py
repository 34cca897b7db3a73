"""Looking up rows of a table, with a gradient that is the same bits every time, compiled or not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softtargets.arrays import has_triton

_HAS_KERNELS = has_triton()


@torch.library.custom_op("softtargets::look_up", mutates_args=())
def look_up(weight: Tensor, tokens: Tensor) -> Tensor:
    """The rows of a table (V, D) that tokens (...) name: (..., D), as ``torch.nn.functional.embedding``.

    Compiled for a GPU, torch adds up the gradient of an embedding in whatever order threads come, and two trainings of
    the same recipe differ; in eager mode too, where there are more than some 3,000 tokens. To the compiler this is one
    operation that it cannot look into; on a GPU its gradient is a kernel of ours, which has one order, where there is
    Triton. A stack of tables (runs, V, D) has tokens (runs, ...), and sums up for each run as if it were alone.

    >>> look_up(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 1, 0]))
    tensor([[3., 4.], [3., 4.], [1., 2.]])
    """
    if weight.ndim == 2:
        return functional.embedding(tokens, weight)
    return torch.stack([functional.embedding(own, each) for each, own in zip(weight, tokens, strict=True)])


@torch.library.custom_op("softtargets::look_up_gradient", mutates_args=())
def look_up_gradient(upstream: Tensor, tokens: Tensor, rows: int, stacked: bool) -> Tensor:
    """The gradient with respect to a table of so many rows, or a stack of them."""
    if upstream.is_cuda and _HAS_KERNELS:
        return _by_kernel(upstream, tokens, rows, stacked)
    backward = torch.ops.aten.embedding_dense_backward
    if not stacked:
        gradient: Tensor = backward(upstream, tokens, rows, -1, False)
        return gradient
    return torch.stack(
        [backward(each, own, rows, -1, False) for each, own in zip(upstream, tokens, strict=True)]
    )


def _by_kernel(upstream: Tensor, tokens: Tensor, rows: int, stacked: bool) -> Tensor:
    """Tables of a stack as one long one."""
    from softtargets.models.kernels.launch import gradient_of_table  # Triton, which not every machine has

    if not stacked:
        return gradient_of_table(upstream.flatten(0, -2), tokens.flatten(), rows)
    runs = len(tokens)
    first = torch.arange(runs, device=tokens.device).view(-1, *[1] * (tokens.ndim - 1)) * rows
    found = gradient_of_table(upstream.flatten(0, -2), (tokens + first).flatten(), runs * rows)
    return found.view(runs, rows, -1)


@look_up.register_fake
def _(weight: Tensor, tokens: Tensor) -> Tensor:
    return weight.new_empty(*tokens.shape, weight.shape[-1])


@look_up_gradient.register_fake
def _(upstream: Tensor, tokens: Tensor, rows: int, stacked: bool) -> Tensor:
    return upstream.new_empty(*upstream.shape[: int(stacked)], rows, upstream.shape[-1])


def _keep_tokens(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    weight, tokens = inputs
    ctx.rows, ctx.stacked = weight.shape[-2], weight.ndim == 3
    ctx.save_for_backward(tokens)


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
    (tokens,) = ctx.saved_tensors
    return look_up_gradient(upstream.contiguous(), tokens, ctx.rows, ctx.stacked), None


def _keep_tokens_again(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _second_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
    (tokens,) = ctx.saved_tensors
    return look_up(upstream, tokens), None, None, None


look_up.register_autograd(_backward, setup_context=_keep_tokens)
look_up_gradient.register_autograd(_second_backward, setup_context=_keep_tokens_again)


@look_up.register_vmap
def _(info: Any, dims: tuple[int | None, int | None], weight: Tensor, tokens: Tensor) -> tuple[Tensor, int]:
    """A stack of nets; tables and tokens that they share are not copied."""
    if dims[0] is None:
        shared: Tensor = look_up(weight, tokens)
        return shared, dims[1] or 0
    found: Tensor = look_up(weight.movedim(dims[0], 0), _stacked(tokens, dims[1], info.batch_size))
    return found, 0


@look_up_gradient.register_vmap
def _(
    info: Any, dims: tuple[int | None, ...], upstream: Tensor, tokens: Tensor, rows: int, stacked: bool
) -> tuple[Tensor, int]:
    if stacked:
        raise NotImplementedError("the gradient of a stack of stacks of tables is not defined")
    each = _stacked(upstream, dims[0], info.batch_size), _stacked(tokens, dims[1], info.batch_size)
    found: Tensor = look_up_gradient(*each, rows, True)
    return found, 0


def _stacked(values: Tensor, dim: int | None, runs: int) -> Tensor:
    return values.expand(runs, *values.shape) if dim is None else values.movedim(dim, 0)
