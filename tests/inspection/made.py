"""Predictions of nets whose calibration is known, because it was made."""

from __future__ import annotations

import numpy as np
import torch

from softtargets.predictions import open_predictions


def net(examples, classes=10, sharpness=1.0, seed=0, spread=2.0):
    """Logits that would be calibrated if sharpness were 1."""
    random = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(examples, classes, generator=random)
    labels = torch.multinomial(logits.softmax(1), 1, generator=random).squeeze(1)
    return sharpness * logits, labels


def saved(path, logits, labels, name="logits"):
    """The file, opened."""
    np.savez(path, **{name: logits.numpy(), "labels": labels.numpy()})
    return open_predictions(path)
