"""The seam between losses and kernels: what a kernel must know, when one is used, and what autograd sees of it."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function

from softtargets.losses.arguments import choice
from softtargets.losses.batch import Batch, is_plain

if TYPE_CHECKING:
    from softtargets.losses.kernels.launch import Call

MODES = ("auto", "always", "never")
# "auto": on a GPU, where a kernel is faster. "always": wherever one can run. "never": plain PyTorch.
_mode = choice("SOFTTARGETS_KERNELS", os.environ.get("SOFTTARGETS_KERNELS", "auto"), MODES)


def _triton_is_there() -> bool:
    """Kernels are written with tuples, which Triton knows since 3.3, the one that comes with torch 2.7."""
    for name in ("triton", "pytorch-triton", "triton-windows"):  # without importing it, which takes a while
        try:
            major, minor = importlib.metadata.version(name).split(".")[:2]
        except importlib.metadata.PackageNotFoundError:
            continue
        return (int(major), int(minor)) >= (3, 3)
    return False


_TRITON_IS_THERE = _triton_is_there()
# Triton's interpreter runs kernels on the CPU, slowly: for tests.
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# Up to this many logits, what the host does takes longer than what the GPU does.
SMALL = 1 << 18
# Larger gradients than this are multiplied by a kernel that looks first whether there is anything to do.
LOOK_FIRST = 1 << 20


class Rule(NamedTuple):
    """How a kernel computes a loss from a row of logits.

    `numbers` are the hyper-parameters of that kind of rule, each a number, a tensor with one value, or one per row.
    """

    kind: str
    numbers: tuple[float | Tensor, ...]
    table: Tensor | None = None
    teacher: Tensor | None = None


@contextmanager
def use_kernels(mode: str) -> Iterator[None]:
    """Choose inside a block whether fused kernels are used: "auto", "always" or "never".

    The environment variable SOFTTARGETS_KERNELS chooses for a whole program.

    >>> with use_kernels("never"):
    ...     pass  # plain PyTorch, whatever the device
    """
    global _mode
    before, _mode = _mode, choice("mode", mode, MODES)
    try:
        yield
    finally:
        _mode = before


def may_fuse(logits: Tensor) -> bool:
    """Whether a kernel may compute a loss of these logits."""
    if _mode == "never" or logits.dtype not in (torch.float32, torch.bfloat16, torch.float16):
        return False
    if not logits.is_cuda and (_mode == "auto" or not _INTERPRETED):
        return False
    return logits.numel() > 0 and _TRITON_IS_THERE


def is_small(logits: Tensor) -> bool:
    """Whether a GPU waits for the host at this size, where the way from Python to the kernels must be short."""
    return _mode == "auto" and isinstance(logits, Tensor) and logits.is_cuda and logits.numel() <= SMALL


def fused_losses(batch: Batch, rule: Rule) -> Tensor:
    """The loss of every row by a kernel, as an operator that torch.compile and torch.func understand."""
    from softtargets.losses.kernels.ops import TransformableRowLosses, row_losses

    numbers, constants = _numbers(rule.numbers, batch.raw.device)
    teacher = None if rule.teacher is None else _canonical(rule.teacher.detach())
    arguments = (
        _canonical(batch.raw), batch.target.reshape(-1), numbers, constants, rule.table, batch.class_weight,
        teacher, rule.kind, batch.ignore_index,
    )  # fmt: skip
    # While tracing there are no wrapped tensors to be seen, and the operator is all that is needed.
    transformed = not torch.compiler.is_compiling() and not is_plain(*rule_tensors(batch, rule))
    losses: Tensor = TransformableRowLosses.apply(*arguments) if transformed else row_losses(*arguments)  # type: ignore[no-untyped-call]
    return losses


def rule_tensors(batch: Batch, rule: Rule) -> list[Tensor]:
    """All that a kernel would read."""
    read = (batch.raw, batch.target, batch.class_weight, rule.table, rule.teacher, *rule.numbers)
    return [each for each in read if isinstance(each, Tensor)]


def fused_reduction(
    batch: Batch, rule: Rule, mean: bool, dtype: torch.dtype, inplace: bool, plain: Callable[[Tensor], Tensor]
) -> Tensor:
    """The reduced loss by a kernel that reads the logits once for loss and gradient together, in eager mode.

    `plain` computes the same from logits in plain PyTorch; gradients of gradients need it.
    """
    launch = _launching()
    call = _eager_call(batch, rule, launch)
    if batch.raw.requires_grad and torch.is_grad_enabled():
        function = _TwoPasses if batch.raw.dtype == torch.float16 else _OnePass
        loss: Tensor = function.apply(batch.raw, call, mean, dtype, inplace, plain)  # type: ignore[no-untyped-call]
        return loss
    value: Tensor = launch.mean_or_sum(call, mean, None, dtype)
    return value


def fused_chunk(batch: Batch, rule: Rule, factor: Tensor) -> Tensor:
    """Losses of some rows of a larger batch; the logits are overwritten by their gradient times a factor.

    The factor is one number for all rows or one for each.
    """
    launch = _launching()
    call = _eager_call(batch, rule, launch)
    losses = torch.empty(len(call.target), dtype=torch.float32, device=call.logits.device)
    launch.rows_in_place(call, factor.float().expand(len(call.target)).contiguous(), losses)
    return losses


def scale_(gradient: Tensor, upstream: Tensor) -> Tensor:
    """The gradient times what comes from above, in its own memory; for large ones a kernel looks first if that is 1."""
    if gradient.is_cuda and gradient.numel() >= LOOK_FIRST and gradient.is_contiguous() and _TRITON_IS_THERE:
        launch = _launching()
        launch.scale_(gradient, upstream)
        return gradient
    return gradient.mul_(upstream)


@cache
def _launching() -> Any:
    """The module that launches kernels, imported when the first is: not everyone has Triton."""
    from softtargets.losses.kernels import launch

    return launch


def _eager_call(batch: Batch, rule: Rule, launch: Any) -> Call:
    numbers, constants = _numbers(rule.numbers, batch.raw.device)
    teacher = None if rule.teacher is None else _canonical(rule.teacher.detach())
    call: Call = launch.Call(
        _canonical(batch.raw.detach()), batch.target.reshape(-1).contiguous(), rule.kind,
        tuple(constants) if numbers is None else numbers, _contiguous(rule.table), _contiguous(batch.class_weight),
        teacher, batch.ignore_index,
    )  # fmt: skip
    return call


class _OnePass(Function):
    """Loss and gradient in the forward pass; the backward pass multiplies by what comes from above, if it is not 1."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, call: Call, mean: bool, dtype: torch.dtype, inplace: bool, plain: Any
    ) -> Tensor:
        launch = _launching()
        inplace = inplace and _is_own_memory(logits)
        gradient = _room(logits, inplace)
        if inplace:
            call = call._replace(logits=_canonical(gradient))
        else:
            ctx.save_for_backward(logits)
        loss: Tensor = launch.mean_or_sum(call, mean, _canonical(gradient), dtype)
        # Without the logits: a loss that is kept for the record must not keep them.
        ctx.gradient, ctx.call, ctx.mean, ctx.plain = (
            gradient,
            call._replace(logits=torch.empty(0)),
            mean,
            plain,
        )
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        launch = _launching()
        if ctx.gradient is not None and torch._C._functorch.is_legacy_batchedtensor(upstream):
            return ctx.gradient * upstream, *(None,) * 5  # several at once: they cannot share its memory
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None or torch.is_grad_enabled():
            logits = _saved(ctx)
            if torch.is_grad_enabled():
                return torch.autograd.grad(ctx.plain(logits), logits, upstream, create_graph=True)[0], *(
                    None,
                ) * 5
            gradient = _room(logits, inplace=False)
            launch.mean_or_sum(
                ctx.call._replace(logits=_canonical(logits)), ctx.mean, _canonical(gradient), upstream.dtype
            )
        return scale_(gradient, upstream), *(None,) * 5


class _TwoPasses(Function):
    """The gradient in the backward pass, when it is known what comes from above.

    For fp16, where gradients would be lost if they were scaled up only after they have been rounded.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, call: Call, mean: bool, dtype: torch.dtype, inplace: bool, plain: Any
    ) -> Tensor:
        launch = _launching()
        ctx.save_for_backward(logits)
        ctx.call, ctx.mean, ctx.inplace, ctx.plain = (
            call._replace(logits=torch.empty(0)),
            mean,
            inplace,
            plain,
        )
        loss: Tensor = launch.mean_or_sum(call, mean, None, dtype)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        launch = _launching()
        logits = _saved(ctx)
        if torch.is_grad_enabled():
            return torch.autograd.grad(ctx.plain(logits), logits, upstream, create_graph=True)[0], *(
                None,
            ) * 5
        call = ctx.call._replace(logits=_canonical(logits))
        factor = upstream.float()
        if ctx.mean:
            factor = (
                factor / launch.count(call.target, call.weight, call.logits.shape[1], call.ignore_index).sum()
            )
        gradient = _room(logits, ctx.inplace and _is_own_memory(logits))
        launch.gradient_of_rows(call, factor.expand(len(call.target)).contiguous(), _canonical(gradient))
        return gradient, *(None,) * 5


def _room(logits: Tensor, inplace: bool) -> Tensor:
    """Where the gradient goes: the logits themselves, or new memory whose rows strides can describe."""
    if inplace:
        torch.autograd.graph.increment_version(logits)
        return logits.detach()
    gradient = torch.empty_like(logits)
    if _canonical(gradient).data_ptr() != gradient.data_ptr():
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
    return gradient


def _is_own_memory(logits: Tensor) -> bool:
    """Whether every logit has a place of its own that a kernel can write to: not expanded, and rows with strides."""
    return 0 not in logits.stride() and _canonical(logits).data_ptr() == logits.data_ptr()


def _saved(ctx: Any) -> Tensor:
    if not ctx.saved_tensors:
        raise RuntimeError(
            "this loss was computed with inplace=True and its logits are gone: it has gradients once, and no "
            "gradients of gradients; use inplace=False"
        )
    logits: Tensor = ctx.saved_tensors[0]
    return logits


def _canonical(values: Tensor) -> Tensor:
    """(N, K) or (N, K, d), without copying where strides allow."""
    if values.dim() == 1:
        return values.unsqueeze(0)
    return values if values.dim() <= 3 else values.flatten(2)


def _near(value: Tensor, device: torch.device) -> float | Tensor:
    """A hyper-parameter where the kernel can read it; a single number on the CPU is read here and now."""
    if value.device == device:
        return value
    if value.device.type == "cpu" and value.dim() == 0 and is_plain(value):
        return float(value)
    return value.to(device)


def _contiguous(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.contiguous()


def _numbers(numbers: tuple[float | Tensor, ...], device: torch.device) -> tuple[Tensor | None, list[float]]:
    """Hyper-parameters for the kernels: plain numbers, or (groups, count) on the device if any is a tensor."""
    # As everywhere in torch, a single number may be on the CPU.
    numbers = tuple(_near(each, device) if isinstance(each, Tensor) else each for each in numbers)
    tensors = [each for each in numbers if isinstance(each, Tensor)]
    if not tensors:
        return None, [float(each) for each in numbers]
    largest = tensors[0]
    for each in tensors:  # Dynamo does not know max() with a key
        if each.dim() > largest.dim():
            largest = each
    columns = [
        each.float() if isinstance(each, Tensor) else torch.full_like(largest, each) for each in numbers
    ]
    stacked = torch.stack(torch.broadcast_tensors(*columns), dim=-1).float()
    return stacked.reshape(-1, len(numbers)), []
