r"""Losses and gradients of rows in closed form, in PyTorch: what `kernels.rules` says, on a CPU and in any precision.

With :math:`d_k = z_k - \max z` a rule gives the loss of a row and four coefficients, and with those the gradient

.. math:: (A + B d_k)\, p_k - C q_k - Y [k = y]

where p is softmax(z), and q belongs to the rule: the soft part of the target, or what else pulls at single classes. A
block of rows is finished while it lies in the cache, so that logits are read from memory once and gradients written
once. Where a logit is infinite the loss may come out as no number though it is one: `reference` has the last word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.losses.batch import Batch
from softtargets.losses.rule import WHOLE, Rule

# Of fewer logits the number of operations decides, of more that of exponentials and copies.
FEW = 1 << 13
# Logits in a block, for each thread: with all that is computed from them they fit into a core's own cache.
BLOCK = 1 << 17
LOG2E = 1 / math.log(2)
# Of any precision, and sooner at hand than a number, of which each operation makes a tensor first.
ONE = torch.ones((), device="cpu")

# One number for all rows, or one for each: (n, 1).
Column = Tensor | float


def losses_and_gradient(
    batch: Batch, rule: Rule, factor: Column = 1.0, gradient: Tensor | None = None
) -> Tensor:
    """The loss of every row, (N, 1), whether it counts or not; the gradient of ``(factor * losses).sum()`` is written.

    `gradient` has the shape of ``batch.logits``; without one the losses are all.
    """
    if torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):  # which would take products in half precision
            return losses_and_gradient(batch, rule, factor, gradient)
    call = _Call.of(batch, rule, factor, gradient)
    rows, classes = call.logits.shape
    step = max(1, BLOCK * torch.get_num_threads() // classes)
    parts = call.parts(step) if step < rows else [call]
    losses = [_Block(part).solved(_KINDS[rule.kind]) for part in parts]
    if not (gradient is None or batch.complete or batch.kept is None):
        gradient.masked_fill_(~batch.kept.unsqueeze(1), 0)
    return torch.cat(losses) if len(losses) > 1 else losses[0]


class _Call(NamedTuple):
    """What is read, for all rows or some, and where the gradient is written."""

    logits: Tensor  # (n, K)
    labels: Tensor  # (n, 1)
    gradient: Tensor | None  # (n, K)
    teacher: Tensor | None  # (n, K)
    values: tuple[Column, ...]
    factor: Column
    weight: Tensor | None  # (K,)
    table: Tensor | None  # (K,) or (K, K)

    @classmethod
    def of(cls, batch: Batch, rule: Rule, factor: Column, gradient: Tensor | None) -> _Call:
        logits, labels = batch.logits.detach(), batch.labels
        assert labels is not None
        teacher = None if rule.teacher is None else batch.rows(rule.teacher.detach(), "teacher_logits")
        values = tuple(_column(each, logits.dtype) for each in rule.values)
        return cls(logits, labels.unsqueeze(1), gradient, teacher, values, factor, batch.weight, rule.table)

    def parts(self, step: int) -> Iterator[_Call]:
        for begin in range(0, len(self.logits), step):
            rows = slice(begin, begin + step)

            def some(value: Any, rows: slice = rows) -> Any:
                return value[rows] if isinstance(value, Tensor) else value

            rowwise = (some(each) for each in self[:4])
            values = tuple(some(each) for each in self.values)
            yield _Call(*rowwise, values, some(self.factor), self.weight, self.table)  # type: ignore[call-arg]


class _Solution(NamedTuple):
    """The loss of every row, (n, 1), and the coefficients of its gradient."""

    loss: Tensor
    y: Column
    a: Column = 1.0
    b: Column = 0.0
    c: Column = 0.0
    q: Tensor | float | None = None


class _Block:
    """Some rows: logits less a number (d), and the exponentials of those (e) with their sum."""

    def __init__(self, call: _Call) -> None:
        self.call = call
        self.few = call.logits.numel() < FEW
        self.sum: Column
        self.log_sum: Column
        if self.few:
            self.d = torch.log_softmax(call.logits, 1)
            self.e, self.sum, self.log_sum = torch.exp(self.d, out=call.gradient), 1.0, 0.0
        else:
            self.d = call.logits - call.logits.amax(1, keepdim=True)
            self.e, self.sum = self.exponentials(1.0, call.gradient)
            self.log_sum = torch.log(self.sum)  # type: ignore[arg-type]

    @property
    def of_label(self) -> Tensor:
        """d of the labels: (n, 1)."""
        return self.d.gather(1, self.call.labels)

    def exponentials(self, by: float, out: Tensor | None = None) -> tuple[Tensor, Column]:
        """The exponentials of d times a number, and their sum; normalised already where the sum is 1."""
        if self.few:
            return torch.softmax(torch.mul(self.d, by, out=out), 1), 1.0
        e = torch.mul(self.d, by * LOG2E, out=out).exp2_()  # several times as fast as exp
        return e, e.sum(1, keepdim=True)

    def hard(self) -> Tensor:
        """The cross-entropy of the labels."""
        return self.cross_entropy(self.of_label)

    def cross_entropy(self, mean: Tensor) -> Tensor:
        """The cross-entropy of a target, from the mean of d by it."""
        return mean.neg() if self.few else self.log_sum - mean

    def mean(self, weights: Tensor | float, total: Column = 1.0, out: Tensor | None = None) -> Tensor:
        """Of d, for each row, by weights with this total; `out` is room for products where each row has its own."""
        if isinstance(weights, float):
            mean = self.d.sum(1, keepdim=True).mul_(weights)
        elif weights.dim() == 1:
            mean = (self.d @ weights).unsqueeze(1)
        else:
            mean = _dot(weights, self.d, out)
        return mean.div_(total) if isinstance(total, Tensor) else mean

    def solved(self, solve: Callable[..., _Solution]) -> Tensor:
        """The losses of these rows; their gradient is written where the exponentials are."""
        found = solve(self, *self.call.values)
        weight, factor = self.call.weight, self.call.factor
        of_label = weight[self.call.labels] if weight is not None and solve in _WEIGHTED_AS_A_WHOLE else None
        if self.call.gradient is not None:
            self._into_gradient(found, factor if of_label is None else factor * of_label)
        return found.loss if of_label is None else found.loss * of_label

    def _into_gradient(self, found: _Solution, factor: Column) -> None:
        y = found.y * -factor
        scale = self.sum.reciprocal().mul_(factor) if isinstance(self.sum, Tensor) else factor
        a = scale if isinstance(found.a, float) and found.a == 1 else found.a * scale
        if isinstance(found.b, Tensor) or found.b:
            a = self.d.mul_(scale * found.b).add_(a)
        self.e.mul_(a)
        if isinstance(found.q, float):
            self.e.sub_(found.c * factor * found.q)
        elif found.q is not None:
            self._subtract(found.c, factor, found.q)
        if isinstance(y, Tensor):
            self.e.scatter_add_(1, self.call.labels, y)
        elif y:
            self.e.scatter_(1, self.call.labels, y, reduce="add")

    def _subtract(self, c: Column, factor: Column, q: Tensor) -> None:
        """c * factor * q, in as few operations as what these are allows."""
        if isinstance(c, Tensor) and isinstance(factor, float):
            self.e.addcmul_(q, c, value=-factor)
        elif isinstance(by := c * factor, Tensor):
            self.e.addcmul_(q, by, value=-1)
        else:
            self.e.sub_(q, alpha=by)


def _mixture(block: _Block, hard: Column, soft: Column) -> _Solution:
    weight, table, labels = block.call.weight, block.call.table, block.call.labels
    y = hard if weight is None else hard * weight[labels]
    if isinstance(soft, float) and soft == 0:
        return _Solution(y * block.hard(), y, a=y)
    q: Tensor | float = 1 / block.d.shape[1]
    if table is not None:
        q = (table if table.dim() == 1 else table[labels.squeeze(1)]).to(block.d.dtype)
    if weight is not None:
        q = q * weight
    mass = q.sum(-1, keepdim=True) if isinstance(q, Tensor) else 1.0
    loss = y * block.hard() + soft * (mass * block.log_sum - block.mean(q))
    return _Solution(loss, y, a=y + soft * mass, c=soft, q=q)


def _penalty(block: _Block, beta: float) -> _Solution:
    mean = block.mean(block.e, block.sum)
    loss = torch.sub(block.hard(), block.cross_entropy(mean), alpha=beta)
    return _Solution(loss, 1.0, a=mean.mul_(-beta).add_(1), b=beta)


def _focal(block: _Block, gamma: float, slope: float, detached: float) -> _Solution:
    hard = block.hard()
    log_p = -hard
    p = log_p.exp()
    base = -torch.expm1(log_p) if slope == -1 else 1 + slope * p
    safe = base.clamp_min(torch.finfo(base.dtype).tiny)
    factor = torch.where(base > 0, safe**gamma, 1.0 if gamma == 0 else 0.0)
    a = factor
    if not detached:
        a = factor * (1 + torch.where(base > 0, gamma * slope * p * log_p / safe, 0))
    return _Solution(factor * hard, a, a=a)


def _labo(block: _Block, offset: float, slope: float, sharpness: float, with_kl: float) -> _Solution:
    if with_kl == WHOLE:
        return _labo_objective(block, offset, slope, sharpness)
    return _labo_detached(block, offset, slope, sharpness, with_kl)


def _labo_detached(block: _Block, offset: float, slope: float, sharpness: float, with_kl: float) -> _Solution:
    log_classes, weight, labels = math.log(block.d.shape[1]), block.call.weight, block.call.labels
    room = torch.empty_like(block.d)  # used again while it lies in the cache
    if slope and log_classes:
        mean = block.mean(block.e, block.sum, room)
        negentropy = mean if block.few else mean.sub_(block.log_sum)
        alpha = torch.rsub(negentropy, offset, alpha=slope / log_classes)
    else:
        alpha = block.d.new_full((len(labels), 1), offset)
    q, total = block.exponentials(sharpness, room)
    kl: Tensor | None = None
    if with_kl and sharpness:
        log_sum = torch.logsumexp(block.d * sharpness, 1, keepdim=True)
        kl = (log_classes - log_sum) / sharpness + block.mean(q, total)
    if weight is not None:
        of_label = weight[labels]
        y, q = (1 - alpha) * of_label, q.mul_(weight)
        mass = q.sum(1, keepdim=True) / total
        loss = y * block.hard() + alpha * (mass * block.log_sum - block.mean(q, total))
        found = _Solution(loss, y, a=y + alpha * mass, c=alpha / total, q=q)
        kl = None if kl is None else kl * of_label
    elif block.few:  # the whole target at once: operations count here, not passes
        target = q.mul_(alpha).scatter_add_(1, labels, ONE - alpha)
        found = _Solution(block.mean(target).neg_(), 0.0, c=1.0, q=target)
    else:
        mean = torch.lerp(block.of_label, block.mean(q, total, out=block.d), alpha)
        found = _Solution(block.cross_entropy(mean), ONE - alpha, c=alpha / total, q=q)
    return found if kl is None else found._replace(loss=found.loss + alpha * kl)


def _labo_objective(block: _Block, offset: float, slope: float, sharpness: float) -> _Solution:
    """LABO's objective and its whole gradient; the docstring of `LABO` has the formula."""
    log_classes, labels = math.log(block.d.shape[1]), block.call.labels
    if sharpness:
        soft = (log_classes - torch.logsumexp(block.d * sharpness, 1, keepdim=True)) / sharpness
    else:
        soft = -block.d.mean(1, keepdim=True)
    by_alpha = block.of_label + soft  # what the objective gains with alpha
    alpha, a, b = (
        block.d.new_full((len(labels), 1), offset),
        ONE.to(block.d.dtype),
        torch.zeros_like(by_alpha),
    )
    if slope and log_classes:
        mean = block.mean(block.e, block.sum)
        alpha = offset + (block.log_sum - mean) * (slope / log_classes)
        b = by_alpha * (-slope / log_classes)
        a = 1 - b * mean
    q, total = block.exponentials(sharpness)
    return _Solution(block.hard() + alpha * by_alpha, 1 - alpha, a=a, b=b, c=alpha / total, q=q)


def _distillation(block: _Block, hard: float, soft: float, sharpness: float, own: float) -> _Solution:
    assert block.call.teacher is not None
    q = torch.softmax(block.call.teacher.to(block.d.dtype) * sharpness, 1)
    if own == 1:
        loss = hard * block.hard() + soft * (block.log_sum - block.mean(q))
        return _Solution(loss, hard, a=hard + soft, c=soft, q=q)
    log_student = torch.log_softmax(block.d * own, 1)
    loss = hard * block.hard() - soft * _dot(q, log_student)
    return _Solution(loss, hard, a=hard, c=soft * own, q=q.sub_(log_student.exp_()))


def _matching(block: _Block, hard: float, squares: float) -> _Solution:
    assert block.call.teacher is not None
    away = block.call.teacher.to(block.d.dtype) - block.call.logits
    return _Solution(hard * block.hard() + squares * 0.5 * _dot(away, away), hard, a=hard, c=squares, q=away)


_KINDS: dict[str, Callable[..., _Solution]] = {
    "mixture": _mixture,
    "penalty": _penalty,
    "focal": _focal,
    "labo": _labo,
    "distillation": _distillation,
    "matching": _matching,
}
# The loss of an example is multiplied by the weight of its label, and that is all that weights do.
_WEIGHTED_AS_A_WHOLE = (_penalty, _focal, _matching)


def _dot(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of two rows, for each: (n, 1)."""
    return torch.mul(a, b, out=out).sum(1, keepdim=True)


def _column(value: float | Tensor, dtype: torch.dtype) -> Column:
    """A hyper-parameter as a number, or one for each row."""
    if not isinstance(value, Tensor):
        return value
    return value.item() if value.dim() == 0 else value.to(dtype).unsqueeze(1)
