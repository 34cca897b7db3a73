"""Losses written out as plain loops in double precision."""

from __future__ import annotations

import math

import torch

from softtargets.losses import (
    LABO,
    AntiFocalLoss,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
)


def batch(count=6, classes=4, dtype=torch.float64, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (count,), generator=generator)
    return logits.to(dtype), labels


def log_softmax(row):
    highest = max(row)
    log_total = highest + math.log(sum(math.exp(value - highest) for value in row))
    return [value - log_total for value in row]


def softmax(row):
    return [math.exp(value) for value in log_softmax(row)]


def cross_entropy(target, row):
    return -sum(q * log_p for q, log_p in zip(target, log_softmax(row), strict=True) if q)


def smoothed_target(label, classes, alpha, spread):
    if spread == "all":
        return [(1 - alpha) * (k == label) + alpha / classes for k in range(classes)]
    return [1 - alpha if k == label else alpha / (classes - 1) for k in range(classes)]


def one_hot(label, classes):
    return [float(k == label) for k in range(classes)]


def without_label(q, label):
    """q with the label taken out, and its part shared among the others."""
    return [0.0 if k == label else value / (1 - q[label]) for k, value in enumerate(q)]


def mixed(target, q, alpha):
    return [(1 - alpha) * t + alpha * value for t, value in zip(target, q, strict=True)]


def entropy(p):
    return -sum(value * math.log(value) for value in p if value)


def weighted_cross_entropy(target, row, weight=None):
    weight = weight or [1.0] * len(row)
    return -sum(
        w * q * log_p for w, q, log_p in zip(weight, target, log_softmax(row), strict=True) if w * q != 0
    )


def weighted_cross_entropy_gradient(target, row, weight=None):
    """By hand: every class is pulled down by its probability times all weighted mass, and up by its own."""
    weight = weight or [1.0] * len(row)
    mass = sum(w * q for w, q in zip(weight, target, strict=True))
    return [p * mass - w * q for p, w, q in zip(softmax(row), weight, target, strict=True)]


def weight_of(target, weight):
    return sum(w * q for w, q in zip(weight, target, strict=True)) if weight else 1.0


def rows(values):
    """(C), (N, C) or (N, C, d1, ...) as a list of rows of classes."""
    values = values.detach().double()
    if values.dim() > 1:
        values = values.movedim(1, -1)
    return values.reshape(-1, values.shape[-1]).tolist()


def reduced(losses, labels, reduction, weight=None, ignore_index=-100):
    """Losses of rows put together as torch does; labels are None where the target is probabilities."""
    if labels is None:
        total = float(len(losses))
    else:
        losses = [0.0 if y == ignore_index else loss for loss, y in zip(losses, labels, strict=True)]
        total = sum(weight[y] if weight else 1.0 for y in labels if y != ignore_index)
    if reduction == "none":
        return losses
    return sum(losses) / (total if reduction == "mean" else 1)


def by_rows(function, logits, target, reduction="mean", weight=None, ignore_index=-100, teacher=None):
    """`function(row, target distribution, taught row, label)` for each row that counts, then reduced."""
    listed = rows(logits)
    classes = len(listed[0])
    taught = rows(teacher) if teacher is not None else [None] * len(listed)
    if target.dtype.is_floating_point:
        labels = [None] * len(listed)
        targets = rows(target)
    else:
        labels = target.reshape(-1).tolist()
        targets = [one_hot(label, classes) for label in labels]
    losses = [
        0.0 if label is not None and label == ignore_index else function(row, t, other, label)
        for row, t, other, label in zip(listed, targets, taught, labels, strict=True)
    ]
    labels = None if target.dtype.is_floating_point else labels
    return reduced(losses, labels, reduction, weight, ignore_index)


def shaped(shape, classes, dtype=torch.float64, seed=0, scale=2.0):
    """Logits of (N, C, d1, ...) for shape (N, d1, ...), or (C) for (), with labels and probabilities."""
    generator = torch.Generator().manual_seed(seed)
    place = 1 if shape else 0
    size = (*shape[:1], classes, *shape[1:])
    logits = scale * torch.randn(size, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, shape, generator=generator)
    probabilities = torch.softmax(torch.randn(size, generator=generator, dtype=torch.float64), place)
    return logits.to(dtype), labels, probabilities.to(dtype)


def value_and_gradient(function, logits, *rest):
    logits = logits.detach().clone().requires_grad_()
    value = function(logits, *rest)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.detach(), gradient


def distribution(classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(torch.randn(classes, generator=generator, dtype=torch.float64), -1)


def matrix(classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.softmax(torch.randn(classes, classes, generator=generator, dtype=torch.float64), -1)


def every_loss(classes, **options):
    """Each loss in each of its variants, by name; every one can be called as loss(logits, target, teacher)."""
    made = {
        "cross entropy": CrossEntropy(**options),
        "focal": FocalLoss(**options),
        "focal, detached": FocalLoss(1.5, detach=True, **options),
        "anti-focal": AntiFocalLoss(**options),
        "anti-focal, not detached": AntiFocalLoss(2.0, 1.0, detach=False, **options),
        "confidence penalty": ConfidencePenalty(0.3, **options),
        "distillation": Distillation(3.0, 0.4, **options),
        "distillation, own temperature": Distillation(
            3.0, 0.4, student_temperature=True, scale_gradients=True, **options
        ),
        "distillation of logits": Distillation(1.0, 0.6, match="logits", **options),
        "labo": LABO(**options),
        "labo, reversed": LABO(tau=2.0, rho=0.8, reading="reversed", include_kl=True, **options),
        "labo, fixed": LABO(alpha=0.3, **options),
        "label smoothing": LabelSmoothing(0.2, **options),
        "label smoothing, prior": LabelSmoothing(0.2, prior=distribution(classes), **options),
        "label smoothing, matrix": LabelSmoothing(0.2, matrix=matrix(classes), **options),
    }
    if classes > 1:
        made |= {
            "label smoothing, others": LabelSmoothing(0.2, "others", **options),
            "label smoothing, prior, others": LabelSmoothing(
                0.2, "others", prior=distribution(classes), **options
            ),
            "label smoothing, matrix, others": LabelSmoothing(
                0.2, "others", matrix=matrix(classes), **options
            ),
        }
    return made


NAMES = list(every_loss(2))
