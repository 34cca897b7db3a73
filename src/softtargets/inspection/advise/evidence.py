"""What advice is based on: labels and out-of-fold probabilities, of a file or of a small model of our own.

Of a file, all rows or a reproducible sample of them. Where somebody has labels but no predictions: logistic regression.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.calibration import fold_of
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.reading import Told, Understood, quiet, reading
from softtargets.noise import METHODS, out_of_fold
from softtargets.predictions import Predictions

# A step of the likelihood goes through rows x classes x classes numbers, a hundred resamples take a few hundred steps:
# this many numbers are about half a minute on one core.
LIKELIHOOD_WORK = 20_000_000
LIKELIHOOD_ROWS = 50_000  # the interval of the clean rate is then below half a percent
PER_CLASS = 40  # rows of each class that a sample must leave for a cluster to be found
ROWS, NUMBERS = 200_000, 1 << 24  # of the other methods: rows, and probabilities in memory (128 MB)
_SEED = 2  # of the choice of rows; other choices from the same file have other seeds
SIDE = 32  # pixels: more cost a linear model time and tell it nothing
FOLDS = 5


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
    if method is not None and method not in METHODS:
        raise SofttargetsError(f"must be one of {', '.join(METHODS)}, not {method}", argument="method")
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


def train_out_of_fold(
    name: str,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    *,
    examples: int | None = None,
    folds: int = FOLDS,
    method: str | None = None,
    told: Told = quiet,
) -> Evidence:
    """Probabilities of images (N, C, H, W) by logistic regressions that were trained on the other folds.

    A linear model hardly learns wrong labels by heart, and takes seconds. `examples` is how many there were before some
    were left out.
    """
    chosen = sampling(len(labels), len(class_names), method)  # refused before anything is trained
    if not 2 <= folds <= len(labels):
        problem = f"must lie between 2 and the number of examples, {len(labels)}, not {folds}"
        raise SofttargetsError(problem, argument="folds")
    counts = np.bincount(labels, minlength=len(class_names))
    if counts.min() < 2:
        found = "no label" if counts.min() == 0 else f"only {counts.min()} label"
        raise SofttargetsError(
            f"{name}: class '{class_names[int(counts.argmin())]}' has {found} among {len(labels):,} examples; "
            "at least 2 of each class are needed, one to learn from and one to predict: raise --limit"
        )
    inputs = reduced(images)
    done = count()

    def fit_predict(rest: NDArray[np.int64], held_out: NDArray[np.int64]) -> NDArray[np.float64]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        told(f"training {folds} models", next(done), folds)
        with warnings.catch_warnings():
            # Stopping early is no harm: what has not converged has learned fewer wrong labels by heart.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=60, tol=1e-2).fit(inputs[rest], labels[rest])
        found = np.zeros((len(held_out), len(class_names)))
        found[:, model.classes_] = model.predict_proba(inputs[held_out])
        return found

    probabilities = out_of_fold(fit_predict, labels, folds)
    whole = examples or len(labels)
    used = f"{'all' if whole == len(labels) else f'{len(labels):,} of {whole:,}'} training examples"
    made = ("probabilities", "of a model trained here", used)
    return Evidence(
        Understood(Path(name), whole, len(class_names), *made, class_names),
        torch.from_numpy(labels)[: chosen.rows],
        torch.from_numpy(probabilities)[: chosen.rows],
        chosen.method,
        chosen.reason,
        trained=f"logistic regression on {inputs.shape[1]:,} pixel values, {folds} folds",
    )


def reduced(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Images as rows of numbers from 0 to 1; large ones are averaged over squares of pixels first.

    >>> reduced(np.full((2, 3, 64, 64), 255, np.uint8)).shape
    (2, 3072)
    """
    examples, channels, height, width = images.shape
    step = -(-max(height, width) // SIDE)
    pooled = images[:, :, : height // step * step, : width // step * step].reshape(
        examples, channels, height // step, step, width // step, step
    )
    rows: NDArray[np.float32] = pooled.mean((3, 5), dtype=np.float32).reshape(examples, -1) / np.float32(255)
    return rows
