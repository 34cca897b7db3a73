"""The last layer and the loss as one: from hidden states to loss and gradients without the full logits in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import Function
from torch.nn import functional

from softtargets.losses.arguments import whole_number
from softtargets.losses.autograd import fused_chunk, fused_losses, may_fuse, scale_, solved_chunk
from softtargets.losses.base import SoftTargetLoss, loss_dtype
from softtargets.losses.batch import Batch
from softtargets.losses.distillation import TopLogits
from softtargets.losses.rule import Rule

# Logits held at a time: enough rows to keep a GPU busy, little beside the weights of a large vocabulary.
CHUNK_BYTES = 256 * 2**20


class LinearTeacher(NamedTuple):
    """A teacher's hidden states and output matrix: its logits, too, are computed a few rows at a time."""

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None = None


class LinearLoss(nn.Module):
    r"""``loss(hidden @ weight.T + bias, target)``, a few rows of logits at a time.

    With 131,072 classes and 8,192 tokens the logits and their gradient take gigabytes that are used only once. Here
    each chunk of rows is multiplied out, replaced by its gradient in place, and multiplied back into the gradients
    of hidden states and weights, so that only one chunk needs memory. The gradients are computed with the loss; the
    backward pass only multiplies them by the incoming gradient. ``reduction="none"``, and fp16, whose gradients
    must be scaled before they are rounded, instead compute the logits once more in the backward pass.

    ``loss`` is any loss without a table that is called with class indices: `LabelSmoothing`, `LABO`,
    `ConfidencePenalty`, `FocalLoss`, `Distillation` (the teacher's logits as stored, as `TopLogits`, or as a
    `LinearTeacher`) and others. ``chunk_rows`` is chosen so that a chunk of logits takes 256 MiB. The gradient of the
    weight is summed over chunks in the weight's own precision; ``accumulate=torch.float32`` does it in single precision
    and rounds once, for 4 bytes per weight.

    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <...>
    >>> from softtargets.losses import LABO
    >>> hidden, weight, target = torch.randn(6, 4), torch.randn(10, 4), torch.tensor([1, 2, 3, 4, 5, 6])
    >>> fused = LinearLoss(LABO(), chunk_rows=2)(hidden, weight, target)
    >>> torch.allclose(fused, LABO()(hidden @ weight.T, target))
    True
    """

    def __init__(
        self, loss: SoftTargetLoss, chunk_rows: int | None = None, accumulate: torch.dtype | None = None
    ) -> None:
        super().__init__()
        if not isinstance(loss, SoftTargetLoss):
            raise TypeError(f"loss must be one of softtargets.losses, not {type(loss).__name__}")
        if loss.shares_state:
            raise TypeError(
                f"{type(loss).__name__} keeps a table of predictions and must see the whole logits; use it without "
                "LinearLoss"
            )
        if accumulate is not None and not accumulate.is_floating_point:
            raise TypeError(f"accumulate must be a floating-point dtype, not {accumulate}")
        self.loss = loss
        self.chunk_rows = None if chunk_rows is None else whole_number("chunk_rows", chunk_rows, 1)
        self.accumulate = accumulate

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(
        self,
        hidden: Tensor,
        weight: Tensor,
        target: Tensor,
        bias: Tensor | None = None,
        teacher: Tensor | TopLogits | LinearTeacher | None = None,
    ) -> Tensor:
        """The loss of hidden states (..., d) with the output matrix (K, d) and class indices (...)."""
        _check(hidden, weight, target, bias)
        if self.loss.needs and teacher is None:
            raise TypeError(
                f"{type(self.loss).__name__} needs a teacher: loss(hidden, weight, target, teacher=...)"
            )
        hidden, weight, bias = _autocast(hidden, weight, bias)
        rows = hidden.reshape(-1, hidden.shape[-1])
        labels, taught = target.reshape(-1).long(), _teacher_rows(teacher, len(rows))
        job = _Job(self.loss, labels, taught, self._chunk(weight), self.accumulate, torch.is_grad_enabled())
        if self.loss.reduction == "none" or rows.dtype == torch.float16:
            losses: Tensor = _Rows.apply(rows, weight, bias, job)  # type: ignore[no-untyped-call]
            result = losses.reshape(target.shape) if self.loss.reduction == "none" else job.reduced(losses)
        elif torch.is_grad_enabled() and any(
            each.requires_grad for each in (hidden, weight, bias) if each is not None
        ):
            result = _OnePass.apply(rows, weight, bias, job)  # type: ignore[no-untyped-call]
        else:
            result = job.reduced(job.losses(rows, weight, bias))
        self.loss.called()
        return result.to(loss_dtype(hidden))

    def _chunk(self, weight: Tensor) -> int:
        if self.chunk_rows is not None:
            return self.chunk_rows
        fitting = CHUNK_BYTES // (weight.shape[0] * weight.element_size())
        return max(128, fitting // 128 * 128)

    def extra_repr(self) -> str:
        """Shown by ``print(loss)``."""
        return f"chunk_rows={self.chunk_rows}, accumulate={self.accumulate}"


class _Job(NamedTuple):
    """One call: what every chunk needs besides hidden states and weights."""

    loss: SoftTargetLoss
    target: Tensor
    teacher: Any
    chunk_rows: int
    accumulate: torch.dtype | None
    learning: bool  # whether gradients are wanted of the whole, which inside of a Function nobody could tell

    def chunks(self) -> list[slice]:
        begins = range(0, len(self.target), self.chunk_rows)
        return [slice(begin, begin + self.chunk_rows) for begin in begins]

    def taught(self, part: slice) -> Any:
        """The teacher's logits of some rows."""
        if isinstance(self.teacher, LinearTeacher):
            hidden, weight, bias = self.teacher
            return functional.linear(hidden[part], weight, bias)
        if isinstance(self.teacher, TopLogits):
            return TopLogits(*(each[part] for each in self.teacher))
        return None if self.teacher is None else self.teacher[part]

    def batch(self, logits: Tensor, part: slice) -> Batch:
        return Batch(logits, self.target[part], self.loss.weight, self.loss.ignore_index)

    def factor(self, dtype: torch.dtype) -> Tensor:
        """What every row's loss is multiplied by."""
        if self.loss.reduction != "mean":
            return torch.ones((), dtype=dtype, device=self.target.device)
        kept = self.target != self.loss.ignore_index
        if self.loss.weight is None:
            return 1 / kept.sum().to(dtype)
        known = kept & (self.target >= 0) & (self.target < len(self.loss.weight))
        labels = self.target.masked_fill(~known, 0)
        total = (self.loss.weight[labels].to(dtype) * kept).sum()
        return 1 / torch.where(total == 0, torch.nan, total)

    def reduced(self, losses: Tensor) -> Tensor:
        """The mean or sum of the losses of all rows."""
        return losses.sum() * self.factor(losses.dtype)

    @torch.no_grad()
    def losses(self, rows: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The loss of every row; the logits live as long as their chunk."""
        losses = torch.empty(len(rows), dtype=_wide(rows.dtype), device=rows.device)
        for part in self.chunks():
            logits = functional.linear(rows[part], weight, bias)
            batch, given = self.batch(logits, part), self.taught(part)
            rule = self._rule(batch, given)
            if rule is not None and may_fuse(logits):
                losses[part] = fused_losses(batch, rule)
            else:
                with torch.set_grad_enabled(self.learning):
                    plain = self.loss.per_example(batch, given)
                losses[part] = batch.settled(plain.detach())
            del logits, batch, given  # before the next chunk is made
        return losses

    def with_gradients(
        self, rows: Tensor, weight: Tensor, bias: Tensor | None, wanted: tuple[bool, ...], factor: Tensor
    ) -> tuple[Tensor, list[Tensor | None]]:
        """The loss of every row, and the gradients of rows, weight and bias for a factor of all or each of the rows."""
        losses = torch.empty(len(rows), dtype=_wide(rows.dtype), device=rows.device)
        of_rows = torch.empty_like(rows) if wanted[0] else None
        dtype = self.accumulate or weight.dtype
        of_weight = torch.zeros(weight.shape, dtype=dtype, device=weight.device) if wanted[1] else None
        of_bias = None
        if bias is not None and wanted[2]:
            of_bias = torch.zeros_like(bias, dtype=_wide(bias.dtype))
        for part in self.chunks():
            logits = functional.linear(rows[part], weight, bias)
            losses[part], gradient = self._into_gradient(logits, part, factor)
            if of_rows is not None:
                torch.mm(gradient, weight, out=of_rows[part])
            if of_weight is not None:
                _add_product(of_weight, gradient.t(), rows[part])
            if of_bias is not None:
                of_bias += gradient.sum(0, dtype=of_bias.dtype)
            del logits, gradient
        return losses, [of_rows, of_weight, of_bias]

    def _rule(self, batch: Batch, given: Any) -> Rule | None:
        with torch.set_grad_enabled(self.learning):
            return self.loss.computable(batch, given)

    def _into_gradient(self, logits: Tensor, part: slice, factor: Tensor) -> tuple[Tensor, Tensor]:
        """(losses, gradient) of a chunk, this times a factor for all or each row; a kernel overwrites the logits."""
        batch, given = self.batch(logits, part), self.taught(part)
        factor = factor[part] if factor.dim() else factor
        rule = self._rule(batch, given)
        if rule is not None and may_fuse(logits):
            return fused_chunk(batch, rule, factor), logits
        if rule is not None and (solved := solved_chunk(batch, rule, factor)) is not None:
            return solved
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            again = self.batch(leaf, part)
            losses = again.settled(self.loss.per_example(again, given))
            (gradient,) = torch.autograd.grad((losses * factor).sum(), leaf)
        return losses.detach(), gradient


class _OnePass(Function):
    """Loss and gradients together; the backward pass multiplies by what comes from above."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, job: _Job) -> Tensor:
        factor = job.factor(_wide(rows.dtype))
        losses, ctx.gradients = job.with_gradients(rows, weight, bias, ctx.needs_input_grad, factor)
        ctx.dtypes = [None if each is None else each.dtype for each in (rows, weight, bias)]
        return losses.sum() * factor

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        if ctx.gradients is None:
            raise RuntimeError(
                "LinearLoss computes its gradients once; call it again for another backward pass"
            )
        found, ctx.gradients = zip(ctx.gradients, ctx.dtypes, strict=True), None
        return *(None if each is None else scale_(each, upstream).to(dtype) for each, dtype in found), None


class _Rows(Function):
    """The loss of every row; what comes from above is known in the backward pass only, so logits are computed again."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, job: _Job) -> Tensor:
        ctx.save_for_backward(rows, weight, bias)
        ctx.job = job
        return job.losses(rows, weight, bias)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        given = ctx.saved_tensors
        by = upstream.to(_wide(given[0].dtype))
        _, gradients = ctx.job.with_gradients(*given, ctx.needs_input_grad, by)
        found = zip(gradients, given, strict=True)
        return *(None if each is None else each.to(like.dtype) for each, like in found), None


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    elif total.is_cuda and total.dtype == torch.float32:
        torch.ops.aten.addmm.dtype_out(total, left, right, torch.float32, out=total)
    else:
        total += torch.mm(left, right)


def _wide(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _autocast(hidden: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """What ``torch.nn.functional.linear`` would multiply under autocast."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        return hidden.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    return hidden, weight, bias


def _teacher_rows(teacher: Any, rows: int) -> Any:
    """What the teacher gives, one row per example."""
    if teacher is None:
        return None
    if isinstance(teacher, LinearTeacher):
        hidden = teacher.hidden.detach().reshape(-1, teacher.hidden.shape[-1])
        bias = None if teacher.bias is None else teacher.bias.detach()
        flat: Any = LinearTeacher(hidden, teacher.weight.detach(), bias)
        found = len(hidden)
    elif isinstance(teacher, TopLogits):
        flat = TopLogits(*(each.reshape(-1, each.shape[-1]) for each in teacher))
        found = len(flat.values)
    else:
        flat = teacher.reshape(-1, teacher.shape[-1])
        found = len(flat)
    if found != rows:
        raise ValueError(f"teacher is for {found} examples, but there are {rows}")
    return flat


def _check(hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None) -> None:
    for name, value in (("hidden", hidden), ("weight", weight)):
        if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
            raise TypeError(f"{name} must be a tensor of floating-point numbers")
    if weight.dim() != 2 or hidden.dim() == 0 or hidden.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"hidden must be (..., d) and weight (K, d) with the same d, not {tuple(hidden.shape)} and "
            f"{tuple(weight.shape)}"
        )
    if target.dtype.is_floating_point:
        raise TypeError("target must be class indices: probabilities would be as large as the logits")
    _check_shape("target", target, hidden.shape[:-1])
    if bias is not None:
        _check_shape("bias", bias, weight.shape[:1])


def _check_shape(name: str, value: Tensor, expected: torch.Size) -> None:
    if value.shape != expected:
        raise ValueError(f"{name} must have shape {tuple(expected)}, not {tuple(value.shape)}")
