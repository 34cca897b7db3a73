"""The kernels as PyTorch operators, so that torch.compile, torch.func and autograd know what they do.

`row_losses` gives the loss of every row and `row_gradients` its gradient; under vmap many runs become one launch. In
eager mode `softtargets.losses.autograd` goes past these to compute loss and gradient in one reading of the logits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, List  # noqa: UP035 - of signatures of operators torch 2.6 knows no other lists

import torch
from torch import Tensor
from torch.autograd.function import Function

from softtargets.losses.kernels import launch

# Positions among the arguments of `row_losses`.
LOGITS, TARGET, VALUES, CONSTANTS, TABLE, WEIGHT, TEACHER, KIND, IGNORE_INDEX = range(9)


@torch.library.custom_op("softtargets::row_losses", mutates_args=())
def row_losses(
    logits: Tensor, target: Tensor, values: Tensor | None, constants: List[float], table: Tensor | None,  # noqa: UP006
    weight: Tensor | None, teacher: Tensor | None, kind: str, ignore_index: int,
) -> Tensor:  # fmt: skip
    """The loss of every row of logits (N, K) or (N, K, d), in single precision; 0 for ignored rows."""
    given = (logits, target, values, constants, table, weight, teacher, kind, ignore_index)
    return launch.per_row(launch.Call.of(*given))


@torch.library.custom_op("softtargets::row_gradients", mutates_args=())
def row_gradients(
    logits: Tensor, target: Tensor, values: Tensor | None, constants: List[float], table: Tensor | None,  # noqa: UP006
    weight: Tensor | None, teacher: Tensor | None, kind: str, ignore_index: int, upstream: Tensor,
) -> Tensor:  # fmt: skip
    """The gradient of ``(upstream * row_losses(...)).sum()`` with respect to the logits."""
    gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
    given = (logits, target, values, constants, table, weight, teacher, kind, ignore_index)
    launch.gradient_of_rows(launch.Call.of(*given), upstream.contiguous(), gradient)
    return gradient


@row_losses.register_fake
def _(logits: Tensor, *_arguments: Any) -> Tensor:
    return logits.new_empty(logits.numel() // logits.shape[1], dtype=torch.float32)


@row_gradients.register_fake
def _(logits: Tensor, *_arguments: Any) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*(inputs[place] for place in (LOGITS, TARGET, VALUES, TABLE, WEIGHT, TEACHER)))
    ctx.constants, ctx.kind, ctx.ignore_index = inputs[CONSTANTS], inputs[KIND], inputs[IGNORE_INDEX]


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    return row_gradients(*_gradient_arguments(ctx, upstream)), *(None,) * 8


def _gradient_arguments(ctx: Any, upstream: Tensor) -> tuple[Any, ...]:
    logits, target, values, table, weight, teacher = ctx.saved_tensors
    rest = (ctx.constants, table, weight, teacher, ctx.kind, ctx.ignore_index)
    return (logits, target, values, *rest, upstream.float())


row_losses.register_autograd(_backward, setup_context=_setup_context)


NO_SECOND = "fused kernels have no second derivatives; compute them inside `with softtargets.losses.use_kernels('never')`"


def _refuse(ctx: Any, *upstream: Tensor) -> Any:
    raise NotImplementedError(NO_SECOND)


row_gradients.register_autograd(_refuse)


class TransformableRowLosses(Function):
    """`row_losses` for torch.func: its transforms take an autograd function, but not an operator's own formula."""

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        """As the operator."""
        losses: Tensor = row_losses(*arguments)
        return losses

    setup_context = staticmethod(_setup_context)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """As the operator."""
        return TransformableRowGradients.apply(*_gradient_arguments(ctx, upstream)), *(None,) * 8  # type: ignore[no-untyped-call]

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *arguments: Any) -> tuple[Tensor, int]:
        """All runs in one launch."""
        apply = TransformableRowLosses.apply
        if _shared(dims):
            losses: Tensor = apply(*_flattened(info.batch_size, dims, arguments))  # type: ignore[no-untyped-call]
            return losses.reshape(info.batch_size, -1), 0
        return _one_by_one(apply, info.batch_size, dims, arguments), 0


class TransformableRowGradients(Function):
    """`row_gradients` for torch.func; there is no third operator for gradients of gradients."""

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        """As the operator."""
        gradient: Tensor = row_gradients(*arguments)
        return gradient

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Nothing to keep."""

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        """Refused."""
        raise NotImplementedError(NO_SECOND)

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], *arguments: Any) -> tuple[Tensor, int]:
        """All runs in one launch."""
        apply = TransformableRowGradients.apply
        if _shared(dims):
            upstream = _stacked(arguments[-1], dims[-1], info.batch_size).reshape(-1)
            gradient: Tensor = apply(*_flattened(info.batch_size, dims, arguments), upstream)  # type: ignore[no-untyped-call]
            return gradient.reshape(info.batch_size, -1, *gradient.shape[1:]), 0
        return _one_by_one(apply, info.batch_size, dims, arguments), 0


def _shared(dims: tuple[int | None, ...]) -> bool:
    """Whether all runs read the same table and class weights, so that their rows can stand in one batch."""
    return dims[TABLE] is None and dims[WEIGHT] is None


def _flattened(runs: int, dims: tuple[int | None, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rows of all runs one after another, each run with its own values."""
    flat = list(arguments[: IGNORE_INDEX + 1])
    for place in (LOGITS, TARGET, TEACHER):
        if flat[place] is not None:
            flat[place] = _stacked(flat[place], dims[place], runs).flatten(0, 1)
    values = flat[VALUES]
    if values is not None and (dims[VALUES] is not None or len(values) > 1):
        flat[VALUES] = _stacked(values, dims[VALUES], runs).flatten(0, 1)
    return tuple(flat)


def _stacked(values: Tensor, dim: int | None, runs: int) -> Tensor:
    return values.expand(runs, *values.shape) if dim is None else values.movedim(dim, 0)


def _one_by_one(
    function: Callable[..., Tensor], runs: int, dims: tuple[int | None, ...], arguments: tuple[Any, ...]
) -> Tensor:
    def own(run: int) -> list[Any]:
        given = zip(arguments, dims, strict=True)
        return [each.select(dim, run) if isinstance(dim, int) else each for each, dim in given]

    return torch.stack([function(*own(run)) for run in range(runs)])
