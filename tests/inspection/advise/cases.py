"""Labels that went wrong in a known way, with predictions of a model that knows the clean ones well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from softtargets.inspection.advise.evidence import Evidence
from softtargets.inspection.advise.finding import advise
from softtargets.inspection.shared.reading import Understood


def uniform(rate, classes):
    """Uniform noise by plain loops."""
    return np.array(
        [[rate if i == j else (1 - rate) / (classes - 1) for j in range(classes)] for i in range(classes)]
    )


def next_class(rate, classes):
    """Labels that become the next class."""
    T = rate * np.eye(classes)
    for i in range(classes):
        T[i, (i + 1) % classes] += 1 - rate
    return T


def noisy(T, examples=1200, seed=0, sharpness=4.0):
    """Logits, noisy labels and clean labels."""
    random = np.random.default_rng(seed)
    clean = np.arange(examples) % len(T)
    labels = np.array([random.choice(len(T), p=T[c]) for c in clean])
    logits = sharpness * np.eye(len(T))[clean] + random.standard_normal((examples, len(T)))
    return logits, labels, clean


def given(logits, labels, method="anchors", names=None, examples=None):
    """What a file would have given."""
    classes = logits.shape[1]
    understood = Understood(Path("a.npz"), examples or len(labels), classes, "logits", "they are", "a", names)
    return Evidence(
        understood, torch.as_tensor(labels), torch.as_tensor(logits).softmax(1), method, "asked for"
    )


def advised(T, examples=1200, seed=0, names=None, method="anchors", sharpness=4.0, **options):
    """Advice about simulated labels."""
    logits, labels, _ = noisy(T, examples, seed, sharpness)
    return advise(given(logits, labels, method, names), resamples=options.pop("resamples", 40), **options)
