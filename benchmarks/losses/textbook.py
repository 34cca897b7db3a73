"""What people write today, in plain PyTorch, one function per loss; and the same loss of ours beside it.

The text-book forms double as documentation of what each loss computes, and in float64 they are what all errors are
measured against. Where a formula sums over classes, half precision becomes single first, as careful code does;
where PyTorch has the function ready, it gets the logits as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses import (
    LABO,
    AntiFocalLoss,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
    SoftTargetLoss,
)

ALPHA = 0.1
TAU, RHO = 1.25, 0.5
BETA = 0.1
GAMMA = 2.0
ANTI_GAMMA, ANTI_ALPHA = 1.0, 0.5
TEMPERATURE, TEACHER_SHARE = 2.0, 0.9


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Hard labels."""
    return F.cross_entropy(logits, target)


def label_smoothing(logits: Tensor, target: Tensor) -> Tensor:
    """Uniform label smoothing, PyTorch's own."""
    return F.cross_entropy(logits, target, label_smoothing=ALPHA)


def labo(logits: Tensor, target: Tensor) -> Tensor:
    """LABO, theorem 1 and equation 16: the target is mixed with the net's own softened opinion."""
    logits = _single(logits)
    log_p = F.log_softmax(logits, dim=-1)
    p_star = F.softmax(logits / TAU, dim=-1).detach()
    entropy = -(log_p.exp() * log_p).sum(-1).detach()
    alpha = 1 - RHO * entropy / math.log(logits.shape[-1])
    hard = F.nll_loss(log_p, target, reduction="none")
    soft = -(p_star * log_p).sum(-1)
    return ((1 - alpha) * hard + alpha * soft).mean()


def confidence_penalty(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy minus the entropy of the prediction."""
    log_p = F.log_softmax(_single(logits), dim=-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    return (F.nll_loss(log_p, target, reduction="none") - BETA * entropy).mean()


def focal(logits: Tensor, target: Tensor) -> Tensor:
    """Focal loss by way of the cross-entropy of each row."""
    loss = F.cross_entropy(logits, target, reduction="none")
    return ((1 - torch.exp(-loss)) ** GAMMA * loss).mean()


def anti_focal(logits: Tensor, target: Tensor) -> Tensor:
    """Anti-focal loss; the factor is a constant weight."""
    loss = F.cross_entropy(logits, target, reduction="none")
    factor = (1 + ANTI_ALPHA * torch.exp(-loss.detach())) ** ANTI_GAMMA
    return (factor * loss).mean()


def distillation(logits: Tensor, target: Tensor, teacher: Tensor) -> Tensor:
    """Hinton's mixture of hard labels and a teacher at a temperature."""
    hard = F.cross_entropy(logits, target)
    soft = F.cross_entropy(logits / TEMPERATURE, F.softmax(teacher / TEMPERATURE, dim=-1))
    return (1 - TEACHER_SHARE) * hard + TEACHER_SHARE * TEMPERATURE**2 * soft


def prior(logits: Tensor, target: Tensor, prior: Tensor) -> Tensor:
    """Smoothing towards given frequencies (unigram smoothing)."""
    log_p = F.log_softmax(_single(logits), dim=-1)
    soft = -(log_p * prior).sum(-1)
    return (1 - ALPHA) * F.nll_loss(log_p, target) + ALPHA * soft.mean()


def matrix(logits: Tensor, target: Tensor, matrix: Tensor) -> Tensor:
    """Smoothing towards the row of a class-to-class matrix that belongs to the label."""
    log_p = F.log_softmax(_single(logits), dim=-1)
    soft = -(matrix[target] * log_p).sum(-1)
    return (1 - ALPHA) * F.nll_loss(log_p, target) + ALPHA * soft.mean()


def _single(logits: Tensor) -> Tensor:
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


@dataclass(frozen=True)
class ComparedLoss:
    """A loss to compare: the text-book form, ours with the same settings, and what both need besides."""

    textbook: Callable[..., Tensor]
    # Called with the table, where there is one, and with options that all our losses take.
    ours: Callable[..., SoftTargetLoss]
    # "teacher" comes with every call and has a row per example; tables are built into our loss.
    given: Literal["", "teacher", "prior", "matrix"] = ""
    # What cross-entropies of others (Liger's, torch's after a projection) take to compute the same; None: they cannot.
    fused: dict[str, Any] | None = None


COMPARED: dict[str, ComparedLoss] = {
    "cross_entropy": ComparedLoss(cross_entropy, CrossEntropy, fused={}),
    "label_smoothing": ComparedLoss(
        label_smoothing, lambda **o: LabelSmoothing(ALPHA, **o), fused={"label_smoothing": ALPHA}
    ),
    "labo": ComparedLoss(labo, lambda **o: LABO(TAU, RHO, **o)),
    "confidence_penalty": ComparedLoss(confidence_penalty, lambda **o: ConfidencePenalty(BETA, **o)),
    "focal": ComparedLoss(focal, lambda **o: FocalLoss(GAMMA, **o)),
    "anti_focal": ComparedLoss(anti_focal, lambda **o: AntiFocalLoss(ANTI_GAMMA, ANTI_ALPHA, **o)),
    "distillation": ComparedLoss(
        distillation,
        lambda **o: Distillation(
            TEMPERATURE, TEACHER_SHARE, student_temperature=True, scale_gradients=True, **o
        ),
        given="teacher",
    ),
    "prior": ComparedLoss(prior, lambda table, **o: LabelSmoothing(ALPHA, prior=table, **o), given="prior"),
    "matrix": ComparedLoss(
        matrix, lambda table, **o: LabelSmoothing(ALPHA, matrix=table, **o), given="matrix"
    ),
}
