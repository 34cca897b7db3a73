"""How pages about LABO tell what was trained, and which runs count for claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.studies.labo.protocol import NAMES, SMALL
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of

MODEL_NAMES = {
    "resnet18": "ResNet-18",
    "mobilenetv2": "MobileNetV2",
    "resnet50": "ResNet-50",
    "resnet152": "ResNet-152",
    "cnn": "a CNN",
    "mlp": "a small MLP",
}
DATA_NAMES = {
    "cifar100": "CIFAR-100",
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "imagenet": "ImageNet",
}
READING_NAMES = {
    "literal": "LABO, equation 16 as printed",
    "adaptive warm-up": "LABO, the same in the warm-up",
    "fixed": "LABO, alpha fixed at 0.1",
    "reversed": "LABO, alpha reversed",
    "hypergradient": "LABO, whole gradient",
}


def setting_name(data: str, model: str) -> str:
    """The data and the model of a column.

    >>> setting_name("cifar100", "resnet18")
    'ResNet-18 on CIFAR-100'
    """
    return f"{MODEL_NAMES[model]} on {DATA_NAMES[data]}"


def setting_title(data: str, model: str) -> str:
    """The same at the beginning of a line.

    >>> setting_title("fashion-mnist", "mlp")
    'A small MLP on Fashion-MNIST'
    """
    name = setting_name(data, model)
    return name[0].upper() + name[1:]


def name_of(labels: Mapping[str, Any]) -> str:
    """A method, and of LABO its reading."""
    return READING_NAMES.get(labels.get("reading", ""), NAMES[labels["method"]])


def what_differs(results: Results) -> tuple[str, ...]:
    """How the training differs from the paper's, as paragraphs."""
    if size_of(results) == "small":
        return (
            "This is the small size, which shows that everything works and decides nothing: a network with one hidden "
            f"layer on {SMALL.data.limit:,} pictures of Fashion-MNIST for {SMALL.epochs} epochs, in fp32. The paper "
            "trains far larger networks on CIFAR for 200 epochs; --set size=full does that, on a GPU. No printed "
            "number is compared here, and no claim about models is judged.",
        )
    return (
        "As the paper says: 45,000 training images, 5,000 held out, random crops and flips, 200 epochs in batches of "
        "128, momentum 0.9, weight decay 5e-4, a rate of 0.1 divided by 5 at epochs 60, 120 and 160.",
        "What the paper leaves open is ours. The 5,000 held-out images are the last ones, and nothing but temperatures "
        "is chosen on them: numbers are those of the last epoch, on the test set. Crops are from images padded by "
        "four pixels, images are standardised by channel, and matrix products are in bf16. LABO's tau is 1.25, one of "
        "the two that the paper tried for translation, since it prints none for CIFAR; rho is 0.5. Its warm-up is that "
        "of the smaller translation tasks: 5,000 steps of uniform smoothing with 0.1.",
    )
