"""Out-of-fold probabilities of a dataset's images, by models trained here: small networks, or logistic regression."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.cnn import cnn_out_of_fold, schedule, shrunk
from softtargets.inspection.advise.evidence import Evidence, check_method, sampling
from softtargets.inspection.shared.numbers import count
from softtargets.inspection.shared.reading import Told, Understood, check_choice, quiet
from softtargets.noise import out_of_fold

MODELS = ("cnn", "logistic")
# Examples that a few minutes suffice for: of networks on two CPU cores or on a GPU, and of logistic regression.
LIMITS = {"cpu": 30_000, "cuda": 100_000, "logistic": 5000}
# On a CPU two folds of many examples teach a network more than five of few, in the same time.
FOLDS = {5000: 5, 15_000: 3, math.inf: 2}
SIDE = 32  # pixels of images for logistic regression: more cost time and tell a linear model nothing


@dataclass(frozen=True)
class Training:
    """Which models are trained, on how many examples, for how long; None is what suits the device."""

    model: str = "cnn"
    limit: int | None = None
    folds: int | None = None
    epochs: int | None = None
    device: str = "auto"
    seed: int = 0

    def check(self) -> None:
        """Refuse what cannot be, before a dataset is read."""
        check_choice("model", self.model, MODELS)
        for name, least, what in (("limit", 2, "examples"), ("folds", 2, "folds"), ("epochs", 1, "epoch")):
            value = getattr(self, name)
            if value is not None and value < least:
                raise SofttargetsError(f"must be at least {least} {what}, not {value}", argument=name)
        if self.epochs is not None and self.model != "cnn":
            raise SofttargetsError(
                "is only for --model cnn; logistic regression has no epochs", argument="epochs"
            )
        self.where()

    def where(self) -> torch.device:
        """The device that trains: a GPU if there is one."""
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError:
            device = torch.device("meta")
        if device.type not in ("cpu", "cuda") or (
            device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
        ):
            there = f"torch sees {count(torch.cuda.device_count(), 'GPU')}"
            raise SofttargetsError(
                f"must be auto, cpu or cuda, not {self.device}; {there}", argument="device"
            )
        return device

    def chosen(self, examples: int) -> NDArray[np.int64]:
        """The rows that are used, in their order: all, or a random choice by the seed."""
        limit = self.limit or LIMITS["logistic" if self.model == "logistic" else self.where().type]
        if examples <= limit:
            return np.arange(examples)
        return np.sort(np.random.default_rng(self.seed).permutation(examples)[:limit])

    def fold_count(self, examples: int) -> int:
        """So many models, each trained on all folds but one."""
        if self.folds is None:
            if self.model == "cnn" and self.where().type == "cpu":
                return min(next(folds for most, folds in FOLDS.items() if examples <= most), examples)
            return min(5, examples)
        if self.folds > examples:
            raise SofttargetsError(
                f"must lie between 2 and the number of examples, {examples}, not {self.folds}",
                argument="folds",
            )
        return self.folds


def train_out_of_fold(
    name: str,
    images: NDArray[np.uint8],
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    plan: Training | None = None,
    *,
    method: str | None = None,
    told: Told = quiet,
) -> Evidence:
    """Labels of a dataset and what models say of its images (N, C, H, W) that were trained on the other folds."""
    check_method(method)
    plan = plan or Training()
    plan.check()
    rows = plan.chosen(len(labels))
    some, given = images[rows], labels[rows]
    folds = plan.fold_count(len(rows))
    _refuse_rare(name, given, class_names)
    if plan.model == "cnn":
        where = plan.where()
        probabilities = cnn_out_of_fold(
            some, given, len(class_names), folds, plan.seed, where, told, epochs=plan.epochs
        )
        each = len(rows) - len(rows) // folds
        epochs = schedule(each, where, folds, plan.epochs).epochs
        trained = (
            f"{folds} small convolutional networks, each trained on {each:,} examples for {count(epochs, 'epoch')} "
            f"on the {'GPU' if where.type == 'cuda' else 'CPU'}"
        )
    else:
        probabilities = _logistic(some, given, len(class_names), folds, plan.seed, told)
        trained = f"{folds} logistic regressions on pixels"
    used = f"{'all' if len(rows) == len(labels) else f'{len(rows):,} of {len(labels):,}'} training examples"
    made = ("probabilities", "of a model trained here", used)
    chosen = sampling(len(rows), len(class_names), method, len(rows))
    return Evidence(
        Understood(Path(name), len(labels), len(class_names), *made, class_names),
        torch.from_numpy(given),
        torch.from_numpy(probabilities),
        chosen.method,
        chosen.reason,
        trained,
        torch.from_numpy(rows),
        some,
    )


def _refuse_rare(name: str, labels: NDArray[np.int64], class_names: tuple[str, ...]) -> None:
    counts = np.bincount(labels, minlength=len(class_names))
    if counts.min() < 2:
        found = "no label" if counts.min() == 0 else f"only {counts.min()} label"
        raise SofttargetsError(
            f"{name}: class '{class_names[int(counts.argmin())]}' has {found} among {len(labels):,} examples; each "
            "class needs at least 2, one to learn from and one to predict. Raise --limit"
        )


def _logistic(
    images: NDArray[np.uint8], labels: NDArray[np.int64], classes: int, folds: int, seed: int, told: Told
) -> NDArray[np.float64]:
    small = shrunk(images, SIDE)
    inputs = small.reshape(len(small), -1).astype(np.float32) / np.float32(255)
    done = iter(range(folds))

    def fit_predict(rest: NDArray[np.int64], held_out: NDArray[np.int64]) -> NDArray[np.float64]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        told(f"training {folds} models", next(done), folds)
        with warnings.catch_warnings():
            # Stopping early does no harm: what has not converged has memorised fewer wrong labels.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticRegression(max_iter=60, tol=1e-2).fit(inputs[rest], labels[rest])
        found = np.zeros((len(held_out), classes))
        found[:, model.classes_] = model.predict_proba(inputs[held_out])
        return found

    return out_of_fold(fit_predict, labels, folds, seed)
