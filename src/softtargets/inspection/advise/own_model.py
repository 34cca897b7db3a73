"""A small model of our own where somebody has labels but no predictions: logistic regression, out of fold."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.sample import Evidence, sampling
from softtargets.inspection.shared.progress import Told, quiet
from softtargets.inspection.shared.understood import Understood
from softtargets.noise import out_of_fold

SIDE = 32  # pixels: more cost a linear model time and tell it nothing
FOLDS = 5


def train_out_of_fold(
    name: str,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    *,
    examples: int | None = None,
    folds: int = FOLDS,
    method: str | None = None,
    seed: int = 0,
    told: Told = quiet,
) -> Evidence:
    """Probabilities of images (N, C, H, W) by logistic regressions that were trained on the other folds.

    A linear model hardly learns wrong labels by heart, and takes seconds. `examples` is how many there were before some
    were left out.
    """
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
    done = [0]

    def fit_predict(rest: NDArray[np.int64], held_out: NDArray[np.int64]) -> NDArray[np.float64]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        told(f"training {folds} models", done[0], folds)
        with warnings.catch_warnings():
            # Stopping early is no harm: what has not converged has learned fewer wrong labels by heart.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=60, tol=1e-2).fit(inputs[rest], labels[rest])
        found = np.zeros((len(held_out), len(class_names)))
        found[:, model.classes_] = model.predict_proba(inputs[held_out])
        done[0] += 1
        return found

    probabilities = out_of_fold(fit_predict, labels, folds, seed)
    whole = examples or len(labels)
    chosen = sampling(len(labels), len(class_names), method)
    used = "all" if whole == len(labels) else f"{len(labels):,} of {whole:,}"
    return Evidence(
        Understood(
            path=Path(name),
            examples=whole,
            classes=len(class_names),
            kind="probabilities",
            reason="of a model trained here",
            source=f"{used} training examples",
            class_names=class_names,
        ),
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
    count, channels, height, width = images.shape
    step = -(-max(height, width) // SIDE)
    pooled = images[:, :, : height // step * step, : width // step * step].reshape(
        count, channels, height // step, step, width // step, step
    )
    rows: NDArray[np.float32] = pooled.mean((3, 5), dtype=np.float32).reshape(count, -1) / np.float32(255)
    return rows
