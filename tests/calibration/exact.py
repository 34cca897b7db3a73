"""The metrics of calibration from their definitions, by plain loops in double precision."""

from __future__ import annotations

import math

import torch


def sampled(count=200, classes=5, scale=2.0, truth=0.7, seed=0, dtype=torch.float64):
    """Logits, and labels drawn from softmax(truth * logits): overconfident where truth is below 1."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(torch.softmax(truth * logits, -1), 1, generator=generator).squeeze(1)
    return logits.to(dtype), labels


def softmax(row):
    top = max(row)
    weights = [math.exp(value - top) for value in row]
    return [weight / math.fsum(weights) for weight in weights]


def pairs(probabilities, labels):
    """Confidence and correctness of the top label, the first of equals."""
    rows = probabilities.tolist()
    return [(max(row), float(row.index(max(row)) == y)) for row, y in zip(rows, labels.tolist(), strict=True)]


def bin_of(value, bins):
    return next(b for b in range(bins) if value < (b + 1) / bins or b == bins - 1)


def gathered(values, bins):
    """(p, outcome) by bin of p."""
    members = [[] for _ in range(bins)]
    for p, outcome in values:
        members[bin_of(p, bins)].append((p, outcome))
    return [group for group in members if group]


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def gap(group):
    return mean(p for p, _ in group) - mean(y for _, y in group)


def binned_error(values, bins):
    return math.fsum(len(group) / len(values) * abs(gap(group)) for group in gathered(values, bins))


def largest_gap(values, bins):
    return max(abs(gap(group)) for group in gathered(values, bins))


def debiased_error(values, bins):
    total = 0.0
    for group in gathered(values, bins):
        if len(group) > 1:
            rate = mean(y for _, y in group)
            total += len(group) / len(values) * (gap(group) ** 2 - rate * (1 - rate) / (len(group) - 1))
    return math.sqrt(max(total, 0))


def adaptive_error(values, bins):
    """Equal mass for distinct confidences and a number of examples that bins divide."""
    ordered = sorted(values)
    size = len(ordered) // bins
    assert size * bins == len(ordered)
    return mean(abs(gap(ordered[b * size : (b + 1) * size])) for b in range(bins))


def smooth_error(values, points=500):
    """The smooth error with every reflection of the kernel written out and the integral by the midpoint rule."""
    c = torch.tensor([p for p, _ in values], dtype=torch.float64)
    r = c - torch.tensor([y for _, y in values], dtype=torch.float64)
    t = (torch.arange(points, dtype=torch.float64) + 0.5) / points

    def at(width):
        total = torch.zeros_like(t)
        for shift in range(-3, 4):
            for sign in (1, -1):
                apart = t[:, None] - (sign * c + 2 * shift)[None]
                kernel = torch.exp(-0.5 * (apart / width) ** 2) / (width * math.sqrt(2 * math.pi))
                total += (kernel * r).sum(1)
        return float((total / len(values)).abs().mean())

    low, high = 1e-3, 1.0
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) > middle else (low, middle)
    return at(low)


def of_class(probabilities, labels, k):
    return [(row[k], float(y == k)) for row, y in zip(probabilities.tolist(), labels.tolist(), strict=True)]


def classwise_error(probabilities, labels, bins):
    classes = probabilities.shape[1]
    return mean(binned_error(of_class(probabilities, labels, k), bins) for k in range(classes))


def brier(probabilities, labels):
    return mean(
        math.fsum((p - (k == y)) ** 2 for k, p in enumerate(row))
        for row, y in zip(probabilities.tolist(), labels.tolist(), strict=True)
    )


def brier_parts(probabilities, labels, bins):
    """Reliability, resolution, uncertainty, and variance less twice the covariance within bins."""
    reliability = resolution = uncertainty = within = 0.0
    count = len(labels)
    for k in range(probabilities.shape[1]):
        values = of_class(probabilities, labels, k)
        base = mean(y for _, y in values)
        uncertainty += base * (1 - base)
        for group in gathered(values, bins):
            said, rate = mean(p for p, _ in group), mean(y for _, y in group)
            reliability += len(group) / count * (said - rate) ** 2
            resolution += len(group) / count * (rate - base) ** 2
            within += math.fsum((p - said) ** 2 - 2 * (p - said) * (y - rate) for p, y in group) / count
    return reliability, resolution, uncertainty, within


def nll(logits, labels):
    return mean(
        max(row) + math.log(math.fsum(math.exp(v - max(row)) for v in row)) - row[y]
        for row, y in zip(logits.tolist(), labels.tolist(), strict=True)
    )


def rank(row, label):
    """How many classes come before the label: higher scores, and the same score further left."""
    return sum(value > row[label] or (value == row[label] and k < label) for k, value in enumerate(row))
