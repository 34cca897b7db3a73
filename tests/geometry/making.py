"""Activations of imagined nets."""

from __future__ import annotations

import numpy as np


def simplex_vertices(classes, size, seed=None):
    """An equiangular tight frame (C, D): rows of I - 1/C, turned at random."""
    rows = np.zeros((classes, size))
    frame = np.eye(classes) - 1 / classes
    values, vectors = np.linalg.eigh(frame)
    coordinates = vectors[:, values > 0.5]  # C x (C - 1), rows with the Gram matrix `frame`
    rows[:, : classes - 1] = coordinates
    return rows if seed is None else rows @ rotation(size, seed)


def rotation(size, seed):
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))
    return turn


def clustered(classes=5, size=7, examples=60, noise=0.5, seed=0, offset=0.0):
    """Activations around class means, every class at least twice; labels; templates of their own."""
    random = np.random.default_rng(seed)
    labels = random.permutation(np.arange(examples) % classes)
    labels[: examples // 4] = np.sort(labels[: examples // 4])  # not quite balanced in any chunk
    means = 3 * random.standard_normal((classes, size)) + offset
    return (
        means[labels] + noise * random.standard_normal((examples, size)),
        labels,
        random.standard_normal((classes, size)),
    )
