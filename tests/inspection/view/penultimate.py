"""Imagined nets, and what there is to measure about them in plain loops."""

from __future__ import annotations

import numpy as np
import torch

from softtargets.inspection.view.finding import Held, Panel

CLASSES, SIZE = 6, 5


def net(seed: int = 0, classes: int = CLASSES, size: int = SIZE):
    """Templates, bias and class means of an imagined net."""
    random = np.random.default_rng(seed)
    return (
        random.standard_normal((classes, size)),
        random.standard_normal(classes),
        3 * random.standard_normal((classes, size)),
    )


def examples(layer, count: int = 240, noise: float = 1.0, seed: int = 1):
    """Activations around the means, every class equally often, in random order."""
    random = np.random.default_rng(seed)
    means = layer[2]
    labels = random.permutation(np.arange(count) % len(means))
    return means[labels] + noise * random.standard_normal((count, means.shape[1])), labels


def panel(layer, found, net_name: str = "net", split: str = "train"):
    activations, labels = (torch.from_numpy(part) for part in found)
    return Panel(
        net_name, split, Held(activations, labels, torch.from_numpy(layer[0]), torch.from_numpy(layer[1]))
    )


def by_hand(activations, labels, weights, classes):
    """Spreads on the plane and in space, over means and over templates, with a basis from Gram and Schmidt."""
    first, second, third = weights[list(classes)]
    one = (first - third) / np.linalg.norm(first - third)
    two = (second - third) - one * (one @ (second - third))
    basis = np.stack([one, two / np.linalg.norm(two)], axis=1)
    apart, flat, centres, count = 0.0, 0.0, [], 0
    for c in classes:
        rows = [row for row, label in zip(activations, labels, strict=True) if label == c]
        centre = sum(rows) / len(rows)
        centres.append(centre)
        for row in rows:
            apart += float(np.sum((row - centre) ** 2))
            flat += float(np.sum(((row - centre) @ basis) ** 2))
            count += 1

    def side(points):
        pairs = [(0, 1), (0, 2), (1, 2)]
        return sum(float(np.linalg.norm(points[i] - points[j])) for i, j in pairs) / 3

    on_plane = side([centre @ basis for centre in centres])
    between = side(weights[list(classes)])
    return {
        "examples": count,
        "spread": (flat / count) ** 0.5 / on_plane,
        "spread_in_space": (apart / count) ** 0.5 / side(centres),
        "spread_over_templates": (flat / count) ** 0.5 / between,
        "spread_over_templates_in_space": (apart / count) ** 0.5 / between,
    }


def class_means(activations, labels, classes: int = CLASSES):
    return np.stack([activations[labels == c].mean(0) for c in range(classes)])


def nc1_by_hand(activations, labels):
    means = class_means(activations, labels)
    within = sum(np.outer(row - means[y], row - means[y]) for row, y in zip(activations, labels, strict=True))
    centred = means - means.mean(0)
    between = centred.T @ centred / len(means)
    return np.trace(within / len(activations) @ np.linalg.pinv(between)) / len(means)


def nc4_by_hand(activations, means, weights, bias):
    apart = 0
    for row in activations:
        nearest = min(range(len(means)), key=lambda c: float(np.sum((row - means[c]) ** 2)))
        apart += nearest != int(np.argmax(weights @ row + bias))
    return apart / len(activations)
