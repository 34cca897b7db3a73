"""Predictions to be written into files, and pickles that would do harm."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from softtargets.predictions import PredictionFileError, open_predictions


def logits(rows: int = 40, classes: int = 5, dtype: str = "float32", seed: int = 0):
    """Logits (rows, classes) and labels that are mostly right."""
    random = np.random.default_rng(seed)
    found = (3 * random.normal(size=(rows, classes))).astype(dtype)
    labels = np.where(random.random(rows) < 0.7, found.argmax(1), random.integers(0, classes, rows))
    return found, labels.astype(np.int64)


def probabilities(rows: int = 40, classes: int = 5, dtype: str = "float32", seed: int = 0):
    """The same through a softmax in float64."""
    found, labels = logits(rows, classes, "float64", seed)
    powers = np.exp(found - found.max(1, keepdims=True))
    return (powers / powers.sum(1, keepdims=True)).astype(dtype), labels


class Bomb:
    """A pickle of this makes a directory when it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


def bomb(directory: Path) -> tuple[Bomb, Path]:
    """A bomb that works, and the directory it must not have made in the end."""
    marker = directory / "exploded"
    pickle.loads(pickle.dumps(Bomb(marker)))
    marker.rmdir()
    return Bomb(marker), marker


def refusal(path, *words: str, **options) -> str:
    """The message with which a file is refused, at the latest when it is read: one line that has these words."""
    with pytest.raises(PredictionFileError) as caught:
        for _ in open_predictions(path, **options).chunks():
            pass
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message or "labels" in options
    for word in words:
        assert word in message, message
    return message


def same(path, scores, expected, /, rows: int | None = 7, **options):
    """The predictions of a file, after a check in chunks, twice, that it gives these scores and labels."""
    found = open_predictions(path, **options)
    for _ in range(2):
        parts = list(found.chunks(rows))
        got = torch.cat([part for part, _ in parts])
        assert torch.equal(got.double(), torch.as_tensor(np.asarray(scores, dtype=np.float64)))
        assert torch.cat([part for _, part in parts]).tolist() == list(expected)
        if rows is not None:
            assert all(len(part) <= rows for part, _ in parts)
    assert found.examples == len(expected)
    assert found.classes == got.shape[1]
    return found
