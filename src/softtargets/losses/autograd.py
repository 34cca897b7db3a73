"""Who computes a loss by its `Rule`, a kernel or `analytic`, and what autograd sees of it: one step, not ten."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import Function

from softtargets.arrays import has_triton
from softtargets.losses.analytic import losses_and_gradient
from softtargets.losses.arguments import choice, is_fake
from softtargets.losses.batch import Batch, is_plain
from softtargets.losses.rule import Rule

if TYPE_CHECKING:
    from softtargets.losses.kernels.launch import Call

MODES = ("auto", "always", "never")
# "auto": on a GPU, where a kernel is faster. "always": wherever one can run. "never": an operation at a time.
_mode = choice("SOFTTARGETS_KERNELS", os.environ.get("SOFTTARGETS_KERNELS", "auto"), MODES)
_TRITON_IS_THERE = has_triton()
# Triton's interpreter runs kernels on the CPU, slowly: for tests.
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
_FUSED_DTYPES = frozenset({torch.float32, torch.bfloat16, torch.float16})
# Up to this many logits, what the host does takes longer than what the GPU does.
SMALL = 1 << 18
# Larger gradients than this are multiplied by a kernel that looks first whether there is anything to do.
LOOK_FIRST = 1 << 20


@contextmanager
def use_kernels(mode: str) -> Iterator[None]:
    """Choose for a `with` block whether fused kernels are used: "auto", "always" or "never".

    "never" means plain PyTorch, one operation at a time, on every device. The environment variable
    SOFTTARGETS_KERNELS chooses for a whole program.

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
    if _mode == "never" or logits.dtype not in _FUSED_DTYPES:
        return False
    if not logits.is_cuda and (_mode == "auto" or not _INTERPRETED):
        return False
    return logits.numel() > 0 and _TRITON_IS_THERE and (torch.compiler.is_compiling() or not is_fake(logits))


def may_solve(logits: Tensor) -> bool:
    """Whether `analytic` may compute a loss of these logits: it looks at results, which only on a CPU costs nothing."""
    return _mode != "never" and logits.is_cpu and logits.numel() > 0 and is_plain(logits)


def may_be_torchs(logits: Any, target: Any, smoothed: bool) -> bool:
    """Whether torch's own cross-entropy is the shortest way: on a CPU, and on a GPU that waits for the host."""
    if _mode != "auto" or not (isinstance(logits, Tensor) and isinstance(target, Tensor)):
        return False
    if logits.is_cuda:
        known = target.dtype == torch.long or target.is_floating_point()
        return known and not smoothed and 0 < logits.numel() <= SMALL
    return _are_torchs(logits, target)


def _are_torchs(logits: Tensor, target: Tensor) -> bool:
    """On a CPU, and not probabilities: torch's loss is no number where one of 0 meets a logit of -inf."""
    fits = target.dtype == torch.long and target.dim() + 1 == logits.dim() and target.device == logits.device
    return fits and logits.is_cpu and logits.numel() > 0 and is_plain(logits, target)


# --- in closed form, on a CPU ---


def solved_reduction(
    batch: Batch, rule: Rule, reduction: str, dtype: torch.dtype, plain: Callable[[Tensor], Tensor]
) -> Tensor | None:
    """The loss in closed form, with its gradient where that is wanted; None where it does not come out as a number.

    `plain` computes the same from logits in plain PyTorch; gradients of gradients need it.
    """
    total = float(batch.total_weight()) if reduction == "mean" else 1.0
    if total == 0 or math.isnan(total):
        return None
    wanted = batch.raw.requires_grad and torch.is_grad_enabled()
    losses, gradient = _solve(batch, rule, 1 / total, wanted)
    if not batch.complete:
        losses = batch.settled(losses.squeeze(1))
    loss = losses.mean() if batch.complete and total == len(losses) else losses.sum() / total
    if not math.isfinite(loss.item()):
        return None
    loss = (losses.reshape(batch.shape) if reduction == "none" else loss).to(dtype)
    if gradient is None:
        return loss
    rest = batch.target, batch.class_weight, batch.ignore_index

    def again(logits: Tensor) -> Tensor | None:
        return _solve(Batch(logits, *rest), rule, 1 / total, True)[1]

    found: Tensor = _OnePass.apply(batch.raw, _Found(loss, gradient, batch.class_dimension, plain, again))  # type: ignore[no-untyped-call]
    return found


def solved_chunk(batch: Batch, rule: Rule, factor: Tensor) -> tuple[Tensor, Tensor] | None:
    """Losses of some rows of a larger batch, and their gradient times a factor for all rows or for each."""
    losses, gradient = _solve(batch, rule, factor.unsqueeze(1) if factor.dim() else factor.item(), True)
    losses = batch.settled(losses.squeeze(1))
    assert gradient is not None
    return (losses, gradient.to(batch.raw.dtype)) if math.isfinite(losses.sum().item()) else None


def _solve(batch: Batch, rule: Rule, factor: Tensor | float, wanted: bool) -> tuple[Tensor, Tensor | None]:
    """The losses of all rows and, if wanted, their gradient in the shape of the logits."""
    if not wanted:
        return losses_and_gradient(batch, rule), None
    gradient = torch.empty_like(batch.logits, memory_format=torch.contiguous_format)
    losses = losses_and_gradient(batch, rule, factor, gradient)
    if batch.raw.dim() != 2:
        gradient = gradient.view(*batch.shape, batch.classes).movedim(-1, batch.class_dimension)
    return losses, gradient


# --- by kernels ---


def fused_losses(batch: Batch, rule: Rule) -> Tensor:
    """The loss of every row by a kernel, as an operator that torch.compile and torch.func understand."""
    from softtargets.losses.kernels.ops import TransformableRowLosses, row_losses

    arguments = _arguments(batch, rule, batch.raw)
    # While tracing there are no wrapped tensors to be seen, and the operator is all that is needed.
    transformed = not torch.compiler.is_compiling() and not is_plain(*rule_tensors(batch, rule))
    losses: Tensor = TransformableRowLosses.apply(*arguments) if transformed else row_losses(*arguments)  # type: ignore[no-untyped-call]
    return losses


def rule_tensors(batch: Batch, rule: Rule) -> list[Tensor]:
    """All that a kernel would read."""
    read = (batch.raw, batch.target, batch.class_weight, rule.table, rule.teacher, *rule.values)
    return [each for each in read if isinstance(each, Tensor)]


def fused_reduction(
    batch: Batch, rule: Rule, mean: bool, dtype: torch.dtype, inplace: bool, plain: Callable[[Tensor], Tensor]
) -> Tensor:
    """The reduced loss by a kernel that reads the logits once for loss and gradient together, in eager mode.

    `plain` computes the same from logits in plain PyTorch; gradients of gradients need it.
    """
    launch, logits = _launching(), batch.raw
    call = launch.Call.of(*_arguments(batch, rule, logits.detach()))
    loss: Tensor
    if not (logits.requires_grad and torch.is_grad_enabled()):
        loss = launch.mean_or_sum(call, mean, None, dtype)
        return loss
    inplace = inplace and _is_own_memory(logits)
    if logits.dtype == torch.float16:
        # Gradients would be lost if they were scaled up only after they have been rounded.
        loss = _TwoPasses.apply(logits, call._replace(logits=_NONE), mean, dtype, inplace, plain)  # type: ignore[no-untyped-call]
        return loss
    gradient = _room(logits, inplace)
    if inplace:
        call = call._replace(logits=_canonical(gradient))
    loss = launch.mean_or_sum(call, mean, _canonical(gradient), dtype)
    loss = _OnePass.apply(logits, _Found(loss, gradient, 1, None if inplace else plain))  # type: ignore[no-untyped-call]
    return loss


def fused_chunk(batch: Batch, rule: Rule, factor: Tensor) -> Tensor:
    """Losses of some rows of a larger batch; the logits are overwritten by their gradient times a factor.

    The factor is one number for all rows or one for each.
    """
    launch = _launching()
    call = launch.Call.of(*_arguments(batch, rule, batch.raw.detach()))
    losses: Tensor = launch.rows_in_place(call, factor.float().expand(len(call.target)).contiguous())
    return losses


def scale_(gradient: Tensor, upstream: Tensor) -> Tensor:
    """The gradient times what comes from above, in its own memory; who can look first if that is 1 does so."""
    if gradient.is_cpu and upstream.dim() == 0 and upstream.item() == 1:
        return gradient
    if gradient.is_cuda and gradient.numel() >= LOOK_FIRST and gradient.is_contiguous() and _TRITON_IS_THERE:
        _launching().scale_(gradient, upstream)
        return gradient
    return gradient.mul_(upstream)


@cache
def _launching() -> Any:
    """The module that launches kernels, imported when the first is: not everyone has Triton."""
    from softtargets.losses.kernels import launch

    return launch


def _arguments(batch: Batch, rule: Rule, logits: Tensor) -> tuple[Any, ...]:
    """Of the operator `row_losses`, for a rule applied to a batch."""
    values, constants = _values(rule.values, logits.device)
    teacher = None if rule.teacher is None else _canonical(rule.teacher.detach())
    return (
        _canonical(logits), batch.target.reshape(-1), values, constants, rule.table, batch.class_weight,
        teacher, rule.kind, batch.ignore_index,
    )  # fmt: skip


# --- what autograd sees ---

_NONE = torch.empty(0)


class _Found(NamedTuple):
    """A loss with its gradient, and how to get either again from logits; in plain PyTorch unless these are gone."""

    loss: Tensor
    gradient: Tensor
    class_dimension: int
    plain: Callable[[Tensor], Tensor] | None
    again: Callable[[Tensor], Tensor | None] | None = None


class _OnePass(Function):
    """Loss and gradient are there already; the backward pass multiplies by what comes from above, if it is not 1."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, found: _Found) -> Tensor:
        if found.plain is not None:
            ctx.save_for_backward(logits)
        # Not the logits: a loss that is kept for the record must not keep them.
        ctx.gradient, ctx.plain, ctx.dtype = found.gradient, found.plain, logits.dtype
        ctx.class_dimension, ctx.again = found.class_dimension, found.again
        return found.loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        by = upstream.unsqueeze(ctx.class_dimension) if upstream.dim() else upstream
        if ctx.gradient is not None and torch._C._functorch.is_legacy_batchedtensor(upstream):
            return (ctx.gradient * by).to(ctx.dtype), None  # several at once: they cannot share its memory
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None and ctx.again is not None:
            gradient = ctx.again(_saved(ctx).detach())
        if gradient is None or torch.is_grad_enabled():
            return _by_plain(ctx, upstream), None
        return scale_(gradient, by).to(ctx.dtype), None


class _TwoPasses(Function):
    """The gradient in the backward pass, when it is known what comes from above."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, call: Call, mean: bool, dtype: torch.dtype, inplace: bool, plain: Any
    ) -> Tensor:
        ctx.save_for_backward(logits)
        ctx.call, ctx.mean, ctx.inplace, ctx.plain = call, mean, inplace, plain
        loss: Tensor = _launching().mean_or_sum(call._replace(logits=_canonical(logits)), mean, None, dtype)
        return loss

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        if torch.is_grad_enabled():
            return _by_plain(ctx, upstream), *(None,) * 5
        launch, logits = _launching(), _saved(ctx)
        call = ctx.call._replace(logits=_canonical(logits))
        factor = upstream.float()
        if ctx.mean:
            counts = launch.label_weights(call.target, call.weight, call.logits.shape[1], call.ignore_index)
            factor = factor / counts.sum()
        gradient = _room(logits, ctx.inplace)
        launch.gradient_of_rows(call, factor.expand(len(call.target)).contiguous(), _canonical(gradient))
        return gradient, *(None,) * 5


def _by_plain(ctx: Any, upstream: Tensor) -> Tensor:
    """The gradient by plain PyTorch: once more, or such that it has gradients itself."""
    logits, further = _saved(ctx), torch.is_grad_enabled()
    with torch.enable_grad():
        leaf = logits if further else logits.detach().requires_grad_()
        return torch.autograd.grad(ctx.plain(leaf), leaf, upstream, create_graph=further)[0]


def _saved(ctx: Any) -> Tensor:
    if not ctx.saved_tensors:
        raise RuntimeError(
            "this loss was computed with inplace=True, which overwrites the logits: gradients can be computed only "
            "once, and gradients of gradients not at all; use inplace=False"
        )
    logits: Tensor = ctx.saved_tensors[0]
    return logits


def _room(logits: Tensor, inplace: bool) -> Tensor:
    """Where the gradient goes: the logits themselves, or new memory whose rows strides can describe."""
    if inplace:
        torch.autograd.graph.increment_version(logits)
        return logits.detach()
    gradient = torch.empty_like(logits)
    if logits.dim() > 3 and _canonical(gradient).data_ptr() != gradient.data_ptr():
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
    return gradient


def _is_own_memory(logits: Tensor) -> bool:
    """Whether every logit has a place of its own that a kernel can write to: not expanded, and rows with strides."""
    return 0 not in logits.stride() and _canonical(logits).data_ptr() == logits.data_ptr()


def _canonical(values: Tensor) -> Tensor:
    """(N, K) or (N, K, d), without copying where strides allow."""
    if values.dim() == 1:
        return values.unsqueeze(0)
    return values if values.dim() <= 3 else values.flatten(2)


def _values(values: tuple[float | Tensor, ...], device: torch.device) -> tuple[Tensor | None, list[float]]:
    """Hyper-parameters for the kernels: plain numbers, or (groups, values) on the device if any is a tensor."""
    near = [_near(each, device) for each in values]
    tensors = [each for each in near if isinstance(each, Tensor)]
    if not tensors:
        return None, near  # type: ignore[return-value]
    like = ([each for each in tensors if each.dim()] or tensors)[0]
    columns = [each.float() if isinstance(each, Tensor) else torch.full_like(like, each) for each in near]
    stacked = torch.stack(torch.broadcast_tensors(*columns), dim=-1).float()
    return stacked.reshape(-1, len(values)), []


def _near(value: float | Tensor, device: torch.device) -> float | Tensor:
    """A hyper-parameter where the kernel can read it; as everywhere in torch, a single number may be on the CPU."""
    if not isinstance(value, Tensor):
        return float(value)
    if value.device == device:
        return value
    if value.device.type == "cpu" and value.dim() == 0 and is_plain(value):
        return float(value)
    return value.to(device)
