"""Predictions of which a correction costs recall, and of which no scaling makes a trustworthy confidence."""

from __future__ import annotations

import numpy as np
import torch


def rare_class(examples=3000, seed=0):
    """Logits of a model that was trained as if three classes were equally frequent, which they are not."""
    random = np.random.default_rng(seed)
    labels = random.choice(3, size=examples, p=[0.9, 0.07, 0.03])
    logits = 2.5 * np.eye(3)[labels] + random.normal(0, 1.3, (examples, 3))
    return torch.from_numpy(logits), torch.from_numpy(labels)


def wrong_way_round(examples=1500, classes=4, seed=0):
    """Confident where it is mostly wrong, and hesitant where it is right: no temperature makes that agree."""
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=examples)
    hard = random.random(examples) < 0.5
    said = np.where(hard & (random.random(examples) < 0.9), (labels + 1) % classes, labels)
    height = np.where(hard, 3.5, 1.2) + random.normal(0, 0.3, examples)
    logits = np.eye(classes)[said] * height[:, None] + random.normal(0, 0.2, (examples, classes))
    return torch.from_numpy(logits), torch.from_numpy(labels)
