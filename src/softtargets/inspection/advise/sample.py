"""What advice is based on: labels and out-of-fold probabilities, all of a file's or a reproducible sample of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.calibration import fold_of
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.progress import Told, quiet
from softtargets.inspection.shared.two_passes import reading
from softtargets.inspection.shared.understood import Understood
from softtargets.noise import METHODS
from softtargets.predictions import Predictions

# A step of the likelihood goes through rows x classes x classes numbers, a hundred resamples take a few hundred steps:
# this many numbers are about half a minute on one core.
LIKELIHOOD_WORK = 20_000_000
LIKELIHOOD_ROWS = 50_000  # the interval of the clean rate is then below half a percent
PER_CLASS = 40  # rows of each class that a sample must leave for a cluster to be found
ROWS, NUMBERS = 200_000, 1 << 24  # of the other methods: rows, and probabilities in memory (128 MB)
_SEED = 2  # of the choice of rows; other choices from the same file have other seeds


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labels (N,) and probabilities (N, K) to be judged, where they come from, and how noise is to be estimated.

    `understood` describes all there was; `method` is one of `softtargets.noise.METHODS`, and `reason` says why it was
    chosen. `trained` says which model was trained for it, if it was one of ours.
    """

    understood: Understood
    labels: Tensor
    probabilities: Tensor
    method: str
    reason: str
    trained: str = ""

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
    Sampling(method='likelihood', rows=50000, reason='the most exact of the methods')
    >>> sampling(1_000_000, 1000).method, sampling(1_000_000, 1000).rows
    ('confident', 16777)
    """
    check_method(method)
    if sample is not None and sample < 1:
        raise SofttargetsError(f"must be at least 1 row, not {sample}", argument="sample")
    few = max(1, min(LIKELIHOOD_ROWS, LIKELIHOOD_WORK // classes**2))
    if method is not None:
        reason = "asked for"
    elif few >= min(examples, sample or examples, PER_CLASS * classes):
        method, reason = "likelihood", "the most exact of the methods"
    else:
        method, reason = "confident", f"with {classes:,} classes the likelihood would take too long"
    most = few if method == "likelihood" else min(ROWS, max(1, NUMBERS // classes))
    return Sampling(method, min(examples, sample or most), reason)


def check_method(method: str | None) -> None:
    """Refuse a method that there is not."""
    if method is not None and method not in METHODS:
        raise SofttargetsError(f"must be one of {', '.join(METHODS)}, not {method}", argument="method")


def sample_of(
    predictions: Predictions, method: str | None = None, sample: int | None = None, told: Told = quiet
) -> Evidence:
    """Read a file once and keep as many of its rows as the plan allows.

    Rows are chosen by a hash of their place, so that the same file gives the same sample, in whatever order it is
    sorted.
    """
    chosen = sampling(predictions.examples, predictions.classes, method, sample)
    parts, kept, seen = [], [], 0
    every = predictions.examples / chosen.rows
    fine = 1 << 20  # the hash gives one of so many numbers, of which the first 1 / every are taken
    for scores, labels in reading(predictions, "reading", told):
        if every > 1:
            taken = fold_of(seen, len(labels), fine, seed=_SEED) < fine / every
            seen += len(labels)
            scores, labels = scores[taken], labels[taken]
        scores = scores.double()
        parts.append(scores.softmax(1) if predictions.kind == "logits" else scores)
        kept.append(labels)
    return Evidence(
        Understood.of(predictions), torch.cat(kept), torch.cat(parts), chosen.method, chosen.reason
    )
