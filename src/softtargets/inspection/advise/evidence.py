"""What advice is based on: labels and out-of-fold probabilities, of a file or of models trained here.

Of a file, all rows or a reproducible sample of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.calibration import fold_of
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.reading import Told, Understood, check_choice, quiet
from softtargets.noise import METHODS
from softtargets.predictions import Predictions

DEFAULT = "anchors"
# A step of the likelihood goes through rows x classes x classes numbers, a hundred resamples take a few hundred steps:
# this many numbers are about half a minute on one core.
LIKELIHOOD_WORK = 20_000_000
LIKELIHOOD_ROWS = 50_000  # the interval of the clean rate is then below half a percent
ROWS, NUMBERS = 200_000, 1 << 24  # of the other methods: rows, and probabilities in memory (128 MB)
_SEED = 2  # of the choice of rows; other choices from the same file have other seeds


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels (N,) and probabilities (N, K) to be judged, where they come from, and how noise is to be estimated.

    `understood` describes all there was, `rows` (N,) is where each example was in it. `method` is one of
    `softtargets.noise.METHODS`, for the matrix of noise, and `reason` says why it was chosen. `trained` says which
    model was trained for it, if it was one of ours, and `images` (N, C, H, W) are what it saw.
    """

    understood: Understood
    labels: Tensor
    probabilities: Tensor
    method: str
    reason: str
    trained: str = ""
    rows: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    images: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        if not len(self.rows):
            object.__setattr__(self, "rows", torch.arange(len(self.labels)))

    @property
    def is_sample(self) -> bool:
        """Whether rows were left out."""
        return len(self.labels) < self.understood.examples


@dataclass(frozen=True)
class Sampling:
    """How many rows are used, at most, and by which method."""

    method: str
    rows: int
    reason: str


def sampling(examples: int, classes: int, method: str | None = None, sample: int | None = None) -> Sampling:
    """Choose a method and a number of rows that half a minute and little memory suffice for.

    >>> sampling(1_000_000, 10)
    Sampling(method='anchors', rows=200000, reason='the default')
    >>> sampling(1_000_000, 10, "likelihood").rows, sampling(1_000_000, 1000).rows
    (50000, 16777)
    """
    check_method(method)
    if sample is not None and sample < 1:
        raise SofttargetsError(f"must be at least 1 row, not {sample}", argument="sample")
    reason = "the default" if method is None else "asked for"
    method = method or DEFAULT
    most = min(ROWS, max(1, NUMBERS // classes))
    if method == "likelihood":
        most = max(1, min(LIKELIHOOD_ROWS, LIKELIHOOD_WORK // classes**2))
    return Sampling(method, min(examples, sample or most), reason)


def check_method(method: str | None) -> None:
    """Refuse a method that there is not, before anything is read."""
    if method is not None:
        check_choice("method", method, tuple(METHODS))


def sample_of(
    predictions: Predictions, method: str | None = None, sample: int | None = None, told: Told = quiet
) -> Evidence:
    """Read a file once and keep as many of its rows as the plan allows.

    Rows are chosen by a hash of their place, so that the same file gives the same sample, in whatever order it is
    sorted.
    """
    chosen = sampling(predictions.examples, predictions.classes, method, sample)
    parts, kept, places, seen = [], [], [], 0
    every = predictions.examples / chosen.rows
    fine = 1 << 20  # the hash gives one of so many numbers, of which the first 1 / every are taken
    told("reading", 0, predictions.examples)
    for scores, labels, rows in predictions.numbered_chunks():
        before, seen = seen, seen + len(labels)
        if every > 1:
            taken = fold_of(before, len(labels), fine, seed=_SEED) < fine / every
            scores, labels, rows = scores[taken], labels[taken], rows[taken]
        scores = scores.double()
        parts.append(scores.softmax(1) if predictions.kind == "logits" else scores)
        kept.append(labels)
        places.append(rows)
        told("reading", seen, predictions.examples)
    understood = Understood.of(predictions)
    known = (torch.cat(kept), torch.cat(parts))
    return Evidence(understood, *known, chosen.method, chosen.reason, rows=torch.cat(places))
