"""Where the replication's trainings differ from those of Müller et al., one difference at a time and all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softtargets.recipes import CNN, SGD, Affine, Crop, Flip, Recipe
from softtargets.studies.grids import smoothing, trial
from softtargets.studies.protocols import ALEXNET_CIFAR10, FCN_TEACHER, RESNET56_CIFAR10_ALL, shrunk
from softtargets.studies.study import Settings, Trial
from softtargets.studies.wagner.grid import fitted, seeds_of
from softtargets.studies.wagner.networks import ALPHAS as TABLE_ALPHAS
from softtargets.studies.wagner.networks import NETWORKS

HARD, BOTH = (0.0,), (0.0, 0.1)
assert set(BOTH) <= set(TABLE_ALPHAS)
BASE, REPLICATED = "Müller et al.", "replication"
CODE = "replication, with the defects of its code"


@dataclass(frozen=True)
class Variant:
    """A training that differs from the first one of its network: in what, and with which strengths of smoothing."""

    name: str
    changes: Mapping[str, Any]
    alphas: tuple[float, ...] = HARD
    small: bool = False


@dataclass(frozen=True)
class Family:
    """Variants of one network's training; `full` and `small` are those that they vary."""

    key: str
    title: str
    full: Recipe
    small: Recipe | None
    variants: tuple[Variant, ...]
    deep: bool = True

    def recipe(self, size: str) -> Recipe | None:
        """What is varied at this size."""
        return self.small if size == "small" else self.full

    def of_size(self, size: str) -> tuple[Variant, ...]:
        """The variants of this size, the one that is varied first."""
        return tuple(variant for variant in self.variants if size != "small" or variant.small)


_CROPS = (Crop(padding=0, size=24), Flip())
# What the notebook passes to RandomAffine: 2 of 28 pixels.
_SHIFTS = (Affine(translate=0.07143),)
_ALEXNET_REPLICATED = {
    "data.validation": 0,
    "data.standardise": "channel",
    "augmentation": _CROPS,
    "optimiser.decay_form": "norm",
}
_ALEXNET_CODE = {"model.lrn": 1 / 8, "model.head": "equal"}

FAMILIES = (
    Family(
        "mnist-fcn",
        "FCN on MNIST",
        FCN_TEACHER,
        NETWORKS["mnist-fcn"].small,
        (
            Variant(BASE, {}, BOTH, small=True),
            Variant("batches of 512", {"batch": 512}, BOTH, small=True),
            Variant("shifts that are rounded", {"augmentation": _SHIFTS}, BOTH, small=True),
            Variant(REPLICATED, {"batch": 512, "augmentation": _SHIFTS}, BOTH, small=True),
            Variant("initial weights of variance 0.03", {"model.init_std": 0.173205}, BOTH, small=True),
            Variant("dropout of 0.5", {"model.dropout": 0.5}, HARD, small=True),
        ),
        deep=False,
    ),
    Family(
        "cifar10-alexnet",
        "AlexNet on CIFAR-10",
        ALEXNET_CIFAR10,
        shrunk(
            ALEXNET_CIFAR10,
            images=2000,
            epochs=4,
            batch=32,
            model=CNN(channels=(8, 16), hidden=64),
            optimiser=SGD(lr=0.05, momentum=0.9),
            multiplier=1.0,
        ),
        (
            Variant(BASE, {}, BOTH, small=True),
            Variant("no brightness and contrast", {"augmentation": _CROPS}, small=True),
            Variant("standardised by channel", {"data.standardise": "channel"}, small=True),
            Variant("weight decay by the norm", {"optimiser.decay_form": "norm"}),
            Variant("trained on all 50,000 images", {"data.validation": 0}),
            Variant("weak local response norm", {"model.lrn": 1 / 8}),
            Variant("equal weights in the last layer", {"model.head": "equal"}),
            Variant(REPLICATED, _ALEXNET_REPLICATED, BOTH),
            Variant(CODE, {**_ALEXNET_REPLICATED, **_ALEXNET_CODE}),
        ),
    ),
    Family(
        "cifar10-resnet56",
        "ResNet-56 on CIFAR-10",
        RESNET56_CIFAR10_ALL,
        None,
        (
            Variant("tensor2tensor", {}, BOTH),
            Variant(
                REPLICATED,
                {"augmentation": _CROPS, "data.standardise": "channel", "model.init": "fan_out"},
                BOTH,
            ),
        ),
    ),
)
BY_KEY = {family.key: family for family in FAMILIES}


def trials(settings: Settings) -> list[Trial]:
    """Every variant of every network of this size, for each of its smoothings and each seed."""
    grid = []
    for family in FAMILIES:
        recipe = family.recipe(settings.size)
        if recipe is None:
            continue
        base = fitted(recipe, settings)
        for seed in seeds_of(family.deep, settings):
            for variant in family.of_size(settings.size):
                for alpha in variant.alphas:
                    varied = {**variant.changes, "regulariser": smoothing(alpha), "seed": seed}
                    labels = {"network": family.key, "variant": variant.name, "alpha": alpha}
                    grid.append(trial(base, varied, size=settings.size, **labels))
    return grid
