"""The networks of the replication's tables 2 and 3: how each is trained, on what it is measured, what was printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from softtargets.claims import Published, published
from softtargets.recipes import (
    CNN,
    CUB200,
    EMNIST,
    SGD,
    Affine,
    Flip,
    Recipe,
    Step,
    Timm,
    TinyImageNet,
)
from softtargets.studies.protocols import (
    ALEXNET_CIFAR10_REPLICATED,
    FCN_FASHION,
    FCN_TEACHER,
    RESNET56_CIFAR10_ALL,
    RESNET56_CIFAR100,
    shrunk,
)

# Of tables 2 and 3.
ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.3)
# Enough to see a direction on a CPU.
FEW_ALPHAS = (0.0, 0.1, 0.3)
# Seeds that decide; of deep networks fewer are trained.
SEEDS, DEEP_SEEDS = 5, 3


def condition(alpha: float) -> str:
    """How the keys of published numbers call a strength of smoothing.

    >>> condition(0.0), condition(0.1), condition(0.05)
    ('hard', 'smoothed', 'smoothed-0.05')
    """
    return {0.0: "hard", 0.1: "smoothed"}.get(alpha, f"smoothed-{alpha:g}")


@dataclass(frozen=True)
class Network:
    """An architecture on a dataset.

    key:       as published numbers call it.
    full:      the recipe of the tables, without smoothing;  small: one that a CPU trains in seconds.
    examples:  how many the printed numbers were measured on.
    evaluated: the split that these examples are.
    deep:      whether it has only `DEEP_SEEDS` seeds.
    differs:   in what its training differs from the replication's, in sentences.
    """

    key: str
    architecture: str
    dataset: str
    full: Recipe
    small: Recipe
    examples: int
    differs: str
    evaluated: Literal["test", "validation"] = "test"
    deep: bool = False

    @property
    def name(self) -> str:
        """As sentences call it."""
        return f"{self.architecture} on {self.dataset}"

    @property
    def seeds(self) -> int:
        """How many seeds decide."""
        return DEEP_SEEDS if self.deep else SEEDS

    def measure(self, name: str) -> str:
        """What a measure is called on the split that the printed numbers are of.

        >>> NETWORKS["cifar100-resnet56"].measure("ece"), NETWORKS["mnist-fcn"].measure("ece")
        ('ece_validation', 'ece')
        """
        return name if self.evaluated == "test" else f"{name}_{self.evaluated}"

    def printed(self, quantity: str, alpha: float) -> Published:
        """What the replication printed."""
        return published(f"wagner-2023/{quantity}/{self.key}/{condition(alpha)}")

    def is_printed(self, recipe: Recipe) -> bool:
        """Whether a recipe is the one of the tables, whatever its smoothing and seed."""
        return recipe.replace({"regulariser": self.full.regulariser, "seed": self.full.seed}) == self.full


def _small(recipe: Recipe, model: Any) -> Recipe:
    """CIFAR for a CPU: all test images are looked at after each epoch, which takes most of the time."""
    plain = SGD(lr=0.05, momentum=0.9)
    return shrunk(
        recipe, images=2000, epochs=4, batch=32, model=model, optimiser=plain, multiplier=1.0, clip=None
    )


_TINY_CNN = CNN(channels=(8, 16), hidden=64)
_TINY_RESNET = {"name": "preact_resnet", "depth": 8, "stages": (4, 8, 16), "variant": "tensor2tensor"}
_DIGITS: dict[str, Any] = {"images": 2000, "epochs": 10, "model__hidden": (200, 200)}
_FCN_DIFFERS = (
    "{}: mini-batches are of 128 images (the replication: 512), and every shift by up to two pixels is equally likely "
    "(its code rounds shifts, so that those by two pixels are half as likely: ERRATA.md, R11)."
)

# Rates of the replication fall by a factor every so many epochs.
_CUB_RATES = Step(milestones=tuple(range(10, 250, 10)), factor=0.9, unit="epoch")
_TINY_RATES = Step(milestones=tuple(range(7, 100, 7)), factor=0.5, unit="epoch")

# Of the paper: pre-trained network, augmentation, rates, decay, length, batch. Ours: photographs are cut to squares
# before they are turned (the paper stretches them afterwards), and channels are standardised.
CUB = Recipe(
    data=CUB200(size=256, standardise="channel"),
    model=Timm(net="resnet34.tv_in1k", pretrained=True),
    augmentation=(Affine(degrees=45, translate=0.35, scale=(0.65, 1.35)), Flip()),
    optimiser=SGD(lr=0.3, weight_decay=1e-5),
    schedule=_CUB_RATES,
    epochs=250,
    batch=256,
    precision="bf16",
)
# The same; the paper leaves the batch open, ours is 128.
TINY = Recipe(
    data=TinyImageNet(standardise="channel"),
    model=Timm(net="resnet50.tv2_in1k", pretrained=True),
    augmentation=(Affine(degrees=7.5, translate=0.1, scale=(0.925, 1.075)), Flip()),
    optimiser=SGD(lr=0.004, momentum=0.9, weight_decay=1e-5),
    schedule=_TINY_RATES,
    epochs=100,
    batch=128,
    precision="bf16",
)
FCN_EMNIST = FCN_TEACHER.replace({"data": EMNIST()})

_ALL = (
    Network(
        "mnist-fcn",
        "FCN",
        "MNIST",
        FCN_TEACHER,
        shrunk(FCN_TEACHER, **_DIGITS),
        10_000,
        _FCN_DIFFERS.format("FCN on MNIST"),
    ),
    Network(
        "fmnist-fcn",
        "FCN",
        "Fashion-MNIST",
        FCN_FASHION,
        shrunk(FCN_FASHION, **_DIGITS),
        10_000,
        _FCN_DIFFERS.format("FCN on Fashion-MNIST"),
    ),
    Network(
        "cifar10-alexnet",
        "AlexNet",
        "CIFAR-10",
        ALEXNET_CIFAR10_REPLICATED,
        _small(ALEXNET_CIFAR10_REPLICATED, _TINY_CNN),
        10_000,
        "AlexNet on CIFAR-10: as in the replication, with its weight decay by the norm (ERRATA.md, R10), but with the "
        "local response norm and the initial weights of TensorFlow's tutorial (R8, R9). Poolings are padded below and "
        "to the right, as there; the replication pads all sides.",
    ),
    Network(
        "cifar10-resnet56",
        "ResNet-56",
        "CIFAR-10",
        RESNET56_CIFAR10_ALL,
        _small(RESNET56_CIFAR10_ALL, _TINY_RESNET),
        10_000,
        "ResNet-56 on CIFAR-10: crops are of 32 x 32 from padded images and standardised by image, as in "
        "tensor2tensor; the replication has crops of 24 x 24, standardised by channel. Initial weights are "
        "tensor2tensor's, the replication's are scaled by the fan-out.",
        deep=True,
    ),
    Network(
        "cifar100-resnet56",
        "ResNet-56",
        "CIFAR-100",
        RESNET56_CIFAR100,
        _small(RESNET56_CIFAR100, _TINY_RESNET),
        10_000,
        "ResNet-56 on CIFAR-100: trained on 40,000 images and measured on the other 10,000 training images, as in both "
        "papers. The first convolution is 3 x 3, as in Müller et al. (the replication: 7 x 7), and images are "
        "standardised one by one (the replication: by channel). Initial weights are tensor2tensor's, the replication's "
        "are scaled by the fan-out.",
        evaluated="validation",
        deep=True,
    ),
    Network(
        "emnist-fcn",
        "FCN",
        "EMNIST",
        FCN_EMNIST,
        shrunk(FCN_EMNIST, **_DIGITS),
        18_800,
        _FCN_DIFFERS.format("FCN on EMNIST"),
    ),
    Network(
        "cub200-resnet34",
        "ResNet-34",
        "CUB-200-2011",
        CUB,
        shrunk(CUB, images=500, epochs=2),
        5_794,
        "ResNet-34 on CUB-200-2011: photographs are cut to squares before they are turned and moved, and channels are "
        "standardised by the training images; the replication stretches photographs to squares.",
        deep=True,
    ),
    Network(
        "tiny-imagenet-resnet50",
        "ResNet-50",
        "Tiny ImageNet",
        TINY,
        shrunk(TINY, images=500, epochs=2),
        10_000,
        "ResNet-50 on Tiny ImageNet: mini-batches are of 128 images; the replication does not say.",
        deep=True,
    ),
)
NETWORKS = {network.key: network for network in _ALL}

# Those whose data anybody can fetch in minutes, and those for users who have the data.
_USUAL = tuple(
    NETWORKS[key]
    for key in ("mnist-fcn", "fmnist-fcn", "cifar10-alexnet", "cifar10-resnet56", "cifar100-resnet56")
)
_ELSEWHERE = {"emnist": "emnist-fcn", "cub200": "cub200-resnet34", "tiny-imagenet": "tiny-imagenet-resnet50"}

SIZES: dict[str, tuple[Network, ...]] = {
    "small": _USUAL,
    "full": _USUAL,
    **{size: (NETWORKS[key],) for size, key in _ELSEWHERE.items()},
}


def differences(networks: Iterable[Network]) -> tuple[str, ...]:
    """What the page says about trainings that are not quite the replication's."""
    return tuple(network.differs for network in networks)
