"""Losses written out as plain loops in double precision."""

from __future__ import annotations

import math

import torch


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
