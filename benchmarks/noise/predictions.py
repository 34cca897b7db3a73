"""Out-of-fold predictions of a case, trained once and kept in a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from benchmarks.noise.cases import MOST, Case, Labels, images_of, labels_of
from benchmarks.noise.models import predictor
from softtargets.noise import out_of_fold

FOLDS = 3


class Predicted(NamedTuple):
    """Given and clean labels (N,) and out-of-fold probabilities (N, K)."""

    given: Labels
    clean: Labels
    probabilities: NDArray[np.float64]


def predicted(case: Case, directory: Path, device: str, limit: int | None = None) -> Predicted:
    """Read what is there, train what is not."""
    path = directory / f"{case.name}.npz"
    if not path.exists():
        _write(case, path, device, limit)
    with np.load(path) as found:
        probabilities = np.exp(found["logs"].astype(np.float64))
        probabilities /= probabilities.sum(1, keepdims=True)
        return Predicted(found["given"].astype(np.int64), found["clean"].astype(np.int64), probabilities)


def _write(case: Case, path: Path, device: str, limit: int | None) -> None:
    begun = time.monotonic()
    images, labels, classes = images_of(case.dataset)
    most = min(len(labels), MOST.get(case.model, len(labels)), limit or len(labels))
    given, clean = labels_of(case, most)
    probabilities = out_of_fold(predictor(case.model, images[:most], given, classes, device), given, FOLDS)
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities).astype(np.float16)  # of logarithms: probabilities near 1 stay apart
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    np.savez(partial, logs=logs, given=given.astype(np.uint8), clean=clean.astype(np.uint8))
    partial.replace(path)
    right, agree = (float((probabilities.argmax(1) == truth).mean()) for truth in (clean, given))
    typer.echo(
        f"{case.name}: {most:,} examples, {right:.1%} right, {agree:.1%} as labelled, "
        f"{time.monotonic() - begun:.1f} s",
    )
