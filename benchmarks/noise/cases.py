"""What is measured: real images, labels of which it is known how many are wrong, and who predicts them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from softtargets.data import load, load_human_labels
from softtargets.noise import instance, pair, symmetric

Labels = NDArray[np.int64]

DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
MODELS = ("logistic", "mlp", "forest", "cnn", "neighbours", "bayes")
RATES = (10, 20, 40)
DRAWN: dict[str, Callable[..., Labels]] = {"uniform": symmetric, "pair": pair, "instance": instance}
PEOPLE = {
    "cifar10": ("aggregate", "random1", "random2", "random3", "worse"),
    "cifar100": ("noisy",),
}
# Examples, at most; a CNN gets all.
MOST = {"logistic": 20_000, "mlp": 20_000, "forest": 10_000, "neighbours": 5_000, "bayes": 10_000}
SEED = 0


@dataclass(frozen=True)
class Case:
    """One row of the table: which images, what was done to their labels, and which model predicted them."""

    dataset: str
    noise: str
    model: str

    @property
    def name(self) -> str:
        """A file's name."""
        return f"{self.dataset}.{self.noise}.{self.model}"


def all_cases() -> list[Case]:
    """Every dataset with every kind of noise it has and every model."""
    return [
        Case(dataset, noise, model) for dataset in DATASETS for noise in noises(dataset) for model in MODELS
    ]


def noises(dataset: str) -> list[str]:
    """What happens to the labels of a dataset: nothing, drawn noise, and what people did.

    >>> noises("cifar100")
    ['clean', 'noisy']
    """
    drawn = [f"{kind}-{rate}" for kind in DRAWN for rate in RATES] if dataset != "cifar100" else []
    return ["clean", *drawn, *PEOPLE.get(dataset, ())]


@lru_cache(maxsize=1)
def images_of(dataset: str) -> tuple[NDArray[np.uint8], Labels, int]:
    """Training images (all 1,797 of the digits), their clean labels, and how many classes there are."""
    found = load(dataset, "train")
    images, labels = found.images, found.labels
    if dataset == "digits":
        rest = load(dataset, "test")
        images, labels = np.concatenate([images, rest.images]), np.concatenate([labels, rest.labels])
    return images, labels, len(found.classes)


def labels_of(case: Case, examples: int) -> tuple[Labels, Labels]:
    """Given and clean labels of the first so many examples."""
    images, clean, classes = images_of(case.dataset)
    images, clean = images[:examples], clean[:examples]
    if case.noise == "clean":
        return clean, clean
    if case.noise in PEOPLE.get(case.dataset, ()):
        return load_human_labels(case.dataset, case.noise).noisy[:examples], clean
    kind, rate = case.noise.split("-")
    if kind == "instance":
        flat = images.reshape(len(images), -1).astype(np.float32)
        flat = (flat - flat.mean()) / flat.std()
        return instance(clean, flat, int(rate) / 100, classes, SEED), clean
    return DRAWN[kind](clean, int(rate) / 100, classes=classes, seed=SEED), clean
