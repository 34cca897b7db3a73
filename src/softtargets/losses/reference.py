"""What a `Rule` means, an operation of PyTorch at a time: for every target, device and derivative.

A rule holds the hyper-parameters as they were when the loss was computed. So this gives the same loss later, when a
warm-up has gone on or random numbers have been drawn anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.batch import Batch
from softtargets.losses.functional import (
    blend,
    divergence_from_uniform,
    entropy,
    relative_entropy,
    share,
    soft_cross_entropy,
)
from softtargets.losses.rule import WHOLE, Rule

# A hyper-parameter.
Value = float | Tensor


def plain_losses(batch: Batch, rule: Rule) -> Tensor:
    """The loss of every row by a rule."""
    device = batch.logits.device
    values = [each.to(device) if isinstance(each, Tensor) else each for each in rule.values]
    return _KINDS[rule.kind](batch, rule, *values)


def labo_target(batch: Batch, offset: Value, slope: Value, sharpness: Value) -> tuple[Value, Tensor]:
    """(alpha, P*): the closed-form solution of LABO's inner problem, at the model's present prediction."""
    alpha = offset
    if not (isinstance(slope, float) and slope == 0):
        alpha = offset + slope * relative_entropy(batch.log_p.detach())
    scaled = batch.logits.detach() * sharpness
    if isinstance(sharpness, Tensor):
        scaled = torch.where(sharpness == 0, 0, scaled)  # uniform, even where a logit is -inf
    return alpha, F.softmax(scaled, dim=-1)


def _mixture(batch: Batch, rule: Rule, hard: Value, soft: Value) -> Tensor:
    if isinstance(soft, float) and soft == 0:
        return share(hard, batch.hard())
    if rule.table is None:
        q = batch.logits.new_full((batch.classes,), 1 / batch.classes)
    else:
        q = rule.table.to(batch.logits.dtype) if rule.table.dim() == 1 else batch.rows_of(rule.table)
    return share(hard, batch.hard()) + share(soft, batch.soft(q))


def _penalty(batch: Batch, rule: Rule, beta: Value) -> Tensor:
    return batch.hard() - batch.example_weight * beta * entropy(batch.log_p)


def _focal(batch: Batch, rule: Rule, gamma: Value, slope: Value, detached: Value) -> Tensor:
    if batch.labels is not None:
        log_p = batch.log_p.gather(-1, batch.labels.unsqueeze(-1)).squeeze(-1)
        return -batch.example_weight * _focal_factor(log_p, gamma, slope, detached) * log_p
    log_p = torch.where(batch.probabilities != 0, batch.log_p, 0)
    return -(batch.mass * _focal_factor(log_p, gamma, slope, detached) * log_p).sum(-1)


def _focal_factor(log_p: Tensor, gamma: Value, slope: Value, detached: Value) -> Tensor:
    """(1 + slope p) ** gamma."""
    if detached:
        log_p = log_p.detach()
    if isinstance(slope, float) and slope == -1:
        base = -torch.expm1(log_p)  # 1 - p, exact where p is almost 1
    else:
        base = 1 + slope * log_p.exp()
    if isinstance(gamma, float) and gamma == 0:
        return torch.ones_like(base)
    # Where p is 1 the factor is 0 (or 1 for gamma = 0), but the slope of a power there may be infinite.
    power = base.clamp_min(torch.finfo(base.dtype).tiny) ** gamma
    at_one = torch.where(gamma == 0, 1.0, 0.0) if isinstance(gamma, Tensor) else 0.0
    return torch.where(base > 0, power, at_one)


def _labo(batch: Batch, rule: Rule, offset: Value, slope: Value, sharpness: Value, with_kl: Value) -> Tensor:
    if with_kl == WHOLE:
        return _labo_objective(batch, offset, slope, sharpness)
    alpha, q = labo_target(batch, offset, slope, sharpness)
    losses = blend(alpha, batch.hard(), batch.soft(q))
    if not with_kl:
        return losses
    moved = alpha * divergence_from_uniform(q.log()) / sharpness
    if isinstance(sharpness, Tensor):
        moved = torch.where(sharpness == 0, 0, moved)
    return losses + batch.example_weight * moved


def _labo_objective(batch: Batch, offset: Value, slope: Value, sharpness: Value) -> Tensor:
    """Equation 14 at its minimum over P, with every derivative: H(P*, p) + tau KL(P* || U) is a free energy."""
    alpha = offset
    if not (isinstance(slope, float) and slope == 0):
        alpha = offset + slope * relative_entropy(batch.log_p)
    uniform = -batch.log_p.mean(-1)
    if isinstance(sharpness, Tensor):  # 0 in the warm-up, where P is uniform
        safe: Value = torch.where(sharpness == 0, 1, sharpness)
        soft = torch.where(sharpness == 0, uniform, _free_energy(batch, safe))
    else:
        soft = _free_energy(batch, sharpness)
    return blend(alpha, batch.hard(), soft)


def _free_energy(batch: Batch, sharpness: Value) -> Tensor:
    """The least of H(P, p) + tau KL(P || U): tau log K - tau log of the sum of the powers 1 / tau of p."""
    return (math.log(batch.classes) - torch.logsumexp(batch.log_p * sharpness, -1)) / sharpness


def _distillation(batch: Batch, rule: Rule, hard: Value, soft: Value, sharpness: Value, own: Value) -> Tensor:
    assert rule.teacher is not None
    q = F.softmax(batch.rows(rule.teacher, "teacher_logits").detach() * sharpness, dim=-1)
    log_p = F.log_softmax(batch.logits * own, dim=-1)
    return share(hard, batch.hard()) + share(soft, soft_cross_entropy(log_p, q))


def _matching(batch: Batch, rule: Rule, hard: Value, squares: Value) -> Tensor:
    assert rule.teacher is not None
    difference = batch.logits - batch.rows(rule.teacher, "teacher_logits").detach()
    return share(hard, batch.hard()) + share(
        squares, batch.example_weight * 0.5 * difference.square().sum(-1)
    )


_KINDS: dict[str, Callable[..., Tensor]] = {
    "mixture": _mixture,
    "penalty": _penalty,
    "focal": _focal,
    "labo": _labo,
    "distillation": _distillation,
    "matching": _matching,
}
