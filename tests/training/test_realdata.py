"""Short trainings on the real datasets, where they are: see that pixels, labels and splits fit together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from softtargets.data import data_directory, status
from softtargets.recipes import (
    CIFAR10,
    CIFAR100,
    CNN,
    MLP,
    MNIST,
    SGD,
    Crop,
    FashionMNIST,
    Flip,
    Recipe,
    Shift,
)
from softtargets.runs import RunStore
from softtargets.training import train

pytestmark = pytest.mark.realdata

FLAT = {"model": MLP(hidden=(128,)), "optimiser": SGD(lr=0.1, momentum=0.9), "epochs": 1, "batch": 64}
CONVOLUTIONS = {
    "model": CNN(channels=(8, 16), hidden=64),
    "optimiser": SGD(lr=0.05, momentum=0.9),
    "batch": 64,
}


@pytest.mark.parametrize(
    ("recipe", "accuracy"),
    [
        (Recipe(data=MNIST(validation=5000, limit=8000), **FLAT), 0.85),
        (Recipe(data=MNIST(limit=8000), augmentation=(Shift(),), **FLAT), 0.75),
        (Recipe(data=FashionMNIST(limit=8000), **FLAT), 0.70),
        (Recipe(data=CIFAR10(limit=4000, standardise="channel"), epochs=2, **CONVOLUTIONS), 0.32),
        (
            Recipe(
                data=CIFAR10(limit=4000, labels="aggregate", standardise="image"),
                augmentation=(Crop(), Flip()),
                epochs=2,
                **CONVOLUTIONS,
            ),
            0.25,
        ),
        (
            Recipe(data=CIFAR100(limit=4000, coarse=True, standardise="channel"), epochs=3, **CONVOLUTIONS),
            0.12,
        ),
    ],
    ids=lambda value: value.data.name if isinstance(value, Recipe) else "",
)
def test_a_small_net_learns_in_seconds(recipe, accuracy, tmp_path):
    if "SOFTTARGETS_DATA" not in os.environ or status(recipe.data.name) != "ready":
        where = Path(os.environ.get("SOFTTARGETS_DATA", data_directory()))
        pytest.skip(
            f"{recipe.data.name} is not in {where}; softtargets data fetch {recipe.data.name} gets it"
        )
    (run,) = train([recipe], RunStore(tmp_path), device="cpu")
    assert run.summary["test_accuracy"] > accuracy
