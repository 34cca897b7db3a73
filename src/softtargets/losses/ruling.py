"""What a fused kernel computes, in plain PyTorch: for derivatives that kernels do not have.

A `Rule` holds the hyper-parameters as they were when the loss was computed. So this gives the same loss later, when a
warm-up has gone on or random numbers have been drawn anew.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.batch import Batch
from softtargets.losses.functional import (
    blend,
    divergence_from_uniform,
    entropy,
    relative_entropy,
    soft_cross_entropy,
    softened,
)
from softtargets.losses.fusing import Rule


def plain_losses(batch: Batch, rule: Rule) -> Tensor:
    """The loss of every row by a rule; the numbers of each kind are listed in ``kernels.rules.settle``."""
    n = [each.to(batch.logits.device) if isinstance(each, Tensor) else each for each in rule.numbers]
    if rule.kind == "mixture":
        if rule.table is None:
            q = batch.logits.new_full((batch.classes,), 1 / batch.classes)
        else:
            q = rule.table.to(batch.logits.dtype) if rule.table.dim() == 1 else batch.rows_of(rule.table)
        return n[0] * batch.hard() + n[1] * batch.soft(q)
    if rule.kind == "penalty":
        return batch.hard() - batch.example_weight * n[0] * entropy(batch.log_p)
    if rule.kind == "focal":
        assert batch.labels is not None
        log_p = batch.log_p.gather(-1, batch.labels.unsqueeze(-1)).squeeze(-1)
        p = torch.where(torch.as_tensor(n[2], device=log_p.device) == 0, log_p, log_p.detach()).exp()
        base = 1 + n[1] * p
        factor = torch.where(base > 0, base.clamp_min(torch.finfo(base.dtype).tiny) ** n[0], 0.0)
        return -batch.example_weight * factor * log_p
    if rule.kind == "labo":
        alpha = n[0] + n[1] * relative_entropy(batch.log_p.detach())
        q = F.softmax(batch.logits.detach() * _column(n[2]), dim=-1)
        losses = blend(alpha, batch.hard(), batch.soft(q))
        sharpness = torch.as_tensor(n[2], device=q.device, dtype=q.dtype)
        moved = alpha * divergence_from_uniform(q.log()) / torch.where(sharpness == 0, 1.0, sharpness)
        return losses + batch.example_weight * n[3] * torch.where(sharpness == 0, 0.0, moved)
    assert rule.teacher is not None
    taught = batch.rows(rule.teacher, "teacher_logits").detach()
    if rule.kind == "matching":
        return n[0] * batch.hard() + n[1] * batch.example_weight * 0.5 * (batch.logits - taught).square().sum(
            -1
        )
    log_q = softened(taught, 1 / _column(n[2]))
    soft = soft_cross_entropy(softened(batch.logits, 1 / _column(n[3])), log_q.exp()) - n[4] * entropy(log_q)
    return n[0] * batch.hard() + n[1] * soft


def _column(value: float | Tensor) -> float | Tensor:
    return value.unsqueeze(-1) if isinstance(value, Tensor) and value.dim() == 1 else value
