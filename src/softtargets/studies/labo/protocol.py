"""How Lu et al. 2023 train on CIFAR, the methods they compare, and the readings of their own.

Of the paper (section 4.2): a tenth of the training images held out, random crops and flips, 200 epochs in batches of
128, SGD with momentum 0.9, weight decay 5e-4, a rate of 0.1 that is divided by 5 at epochs 60, 120 and 160,
ResNeXt-29 as the teacher. Ours: crops from images padded by four pixels, standardisation by channel, bf16. The last
epoch is what counts; models are measured after every fifth, which changes nothing in their training. Hyper-parameters
of the other methods are those of their authors ("we follow their best hyper-parameter settings"); `PARTS` says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from softtargets.recipes import (
    CIFAR10,
    CIFAR100,
    CSKD,
    LABO,
    MLP,
    SGD,
    BetaSmoothing,
    ConfidencePenalty,
    Crop,
    CrossEntropy,
    Dataset,
    Distillation,
    FashionMNIST,
    Flip,
    KnowledgeRefinery,
    LabelSmoothing,
    MaxSup,
    MobileNetV2,
    Model,
    OnlineLabelSmoothing,
    Recipe,
    Regulariser,
    ResNet18,
    ResNeXt29,
    Step,
    TFReg,
)
from softtargets.studies.grids import SMOOTHING_AXES, stretched
from softtargets.studies.study import Settings

# Fields that grids over these vary.
AXES = ("seed", "data", "data.name", "model", "model.name", *SMOOTHING_AXES)
# Predictions that all studies of LABO keep, so that they can share runs.
KEEP = ("test:scores", "validation:scores")
SIZES = ("small", "full")

CLASSES = {"cifar100": 100, "cifar10": 10, "fashion-mnist": 10, "imagenet": 1000}
DATA: Mapping[str, Dataset] = {
    "cifar100": CIFAR100(standardise="channel", validation=5_000),
    "cifar10": CIFAR10(standardise="channel", validation=5_000),
}
MODELS: Mapping[str, Model] = {"resnet18": ResNet18(), "mobilenetv2": MobileNetV2()}
# In the order in which they are worth their time on a GPU.
SETTINGS: tuple[tuple[str, str], ...] = (
    ("cifar100", "resnet18"),
    ("cifar100", "mobilenetv2"),
    ("cifar10", "resnet18"),
    ("cifar10", "mobilenetv2"),
)
SMALL_SETTING = ("fashion-mnist", "mlp")

# When the rate drops, as shares of the training.
DROPS = (0.3, 0.6, 0.8)
# Steps of LABO's warm-up: the paper's for its smaller translation tasks; it prints none for CIFAR.
WARM_UP = 5_000

_FULL = Recipe(
    data=DATA["cifar100"],
    model=MODELS["resnet18"],
    augmentation=(Crop(padding=4), Flip()),
    optimiser=SGD(lr=0.1, momentum=0.9, weight_decay=5e-4),
    schedule=Step(milestones=(60, 120, 160), factor=0.2, unit="epoch"),
    epochs=200,
    batch=128,
    precision="bf16",
    measure_epochs=5,
)
# Two minutes on two cores: a network without convolutions, 2,000 pictures of clothes, the same course in ten epochs.
SMALL = Recipe(
    data=FashionMNIST(standardise="channel", validation=1_000, limit=2_000),
    model=MLP(hidden=(64,)),
    optimiser=SGD(lr=0.05, momentum=0.9, weight_decay=5e-4),
    schedule=Step(milestones=(3, 6, 8), factor=0.2, unit="epoch"),
    epochs=10,
    batch=64,
)
TEACHERS: Mapping[str, Model] = {"full": ResNeXt29(), "small": MLP(hidden=(256, 256))}


def training(data: str, model: str) -> Recipe:
    """Hard targets at full size.

    >>> training("cifar10", "mobilenetv2").model.name
    'mobilenet_v2'
    """
    return _FULL.replace({"data": DATA[data], "model": MODELS[model]})


def settings_of(size: str) -> tuple[tuple[str, str], ...]:
    """Names of data and model, for each column of table 3 or the one that a CPU finishes."""
    return (SMALL_SETTING,) if size == "small" else SETTINGS


def base(settings: Settings, data: str, model: str) -> Recipe:
    """Hard targets with the user's changes; rates drop at the same shares of a training of any length."""
    recipe = SMALL if settings.size == "small" else training(data, model)
    return stretched(settings.base(recipe), settings, *DROPS)


def steps(recipe: Recipe) -> int:
    """How many steps a training has.

    >>> steps(training("cifar100", "resnet18"))
    70400
    """
    if recipe.steps is not None:
        return recipe.steps
    data = recipe.data
    there = (data.training_examples or 0) - data.validation
    examples = there if data.limit is None else min(there, data.limit)
    return (recipe.epochs or 0) * math.ceil(examples / recipe.batch)


def warm_up(recipe: Recipe) -> int:
    """Steps of LABO's warm-up: the same share of a training of any length.

    >>> warm_up(training("cifar100", "resnet18")), warm_up(SMALL)
    (5000, 23)
    """
    return round(WARM_UP * steps(recipe) / steps(training("cifar100", "resnet18")))


# --- the methods of table 3 ---


def teacher(recipe: Recipe, size: str) -> Recipe:
    """The teacher of all students on these data: one training, with the first seed and hard targets."""
    return recipe.replace({"model": TEACHERS[size], "regulariser": CrossEntropy(), "seed": 0})


def _distilled(recipe: Recipe, size: str) -> Regulariser:
    # The paper searches alpha in 0.1, 0.2, 0.5, 0.9 and T in 5, 10, 20, 40 and does not print what it found. These are
    # the places nearest to what TF-KD has for the same networks (0.6 and 0.95, T = 20).
    beta = 0.9 if recipe.model.name == "mobilenet_v2" else 0.5
    taught = teacher(recipe, size)
    return Distillation(
        teacher=taught, temperature=20.0, beta=beta, student_temperature=True, scale_gradients=True
    )


def _teacher_free(recipe: Recipe, size: str) -> Regulariser:
    # TF-KD's for CIFAR-100. Its divergence is a mean over classes too, so the multiplier goes with their number: the
    # smoothing stays as strong as on CIFAR-100.
    share = CLASSES.get(recipe.data.name, 100) / 100
    if recipe.model.name == "mobilenet_v2":
        return TFReg(alpha=0.95, temperature=40.0, multiplier=share)
    return TFReg(alpha=0.1, temperature=20.0, multiplier=100 * share)


def labo(recipe: Recipe, **options: Any) -> LABO:
    """LABO with its warm-up in a training of any length; as the paper writes it, unless told otherwise."""
    return LABO(**{"warmup_steps": warm_up(recipe), **options})


# By name what each trains on. Of the authors: CS-KD's T = 4 and strength 1, Beta-LS's alpha 0.6, beta 3 and decay
# 0.999, OLS's 0.5. The usual 0.1 for label smoothing, the confidence penalty and MaxSup. No strength is known
# for KR-LS: 1, and a table that learns at the rate of the network.
PARTS: Mapping[str, Callable[[Recipe, str], Regulariser]] = {
    "hard": lambda recipe, size: CrossEntropy(),
    "kd": _distilled,
    "ls": lambda recipe, size: LabelSmoothing(alpha=0.1),
    "cs-kd": lambda recipe, size: CSKD(),
    "tf-reg": _teacher_free,
    "beta-ls": lambda recipe, size: BetaSmoothing(),
    "kr-ls": lambda recipe, size: KnowledgeRefinery(),
    "labo": lambda recipe, size: labo(recipe),
    "ols": lambda recipe, size: OnlineLabelSmoothing(),
    "cp": lambda recipe, size: ConfidencePenalty(),
    "maxsup": lambda recipe, size: MaxSup(),
}
NAMES: Mapping[str, str] = {
    "hard": "hard targets",
    "kd": "KD",
    "ls": "LS",
    "cs-kd": "CS-KD",
    "tf-reg": "TF-reg",
    "beta-ls": "Beta-LS",
    "kr-ls": "KR-LS",
    "labo": "LABO",
    "ols": "OLS",
    "cp": "confidence penalty",
    "maxsup": "MaxSup",
}
# Printed in table 3, and what we add.
PRINTED = ("hard", "kd", "ls", "cs-kd", "tf-reg", "beta-ls", "kr-ls", "labo")
ADDED = ("ols", "cp", "maxsup")
# What LABO must beat without a teacher.
RIVALS = ("ls", "cs-kd", "tf-reg", "beta-ls", "kr-ls")

# --- the readings of LABO ---

READINGS: Mapping[str, Mapping[str, Any]] = {
    "literal": {},
    "adaptive warm-up": {"warmup": "adaptive"},
    "fixed": {"alpha": 0.1},
    "reversed": {"reading": "reversed"},
    "hypergradient": {"hypergradient": True},
}

Cell = tuple[Mapping[str, Any], Mapping[str, Any]]


def method_cells(recipe: Recipe, size: str, names: Sequence[str]) -> list[Cell]:
    """What is varied from hard targets, and its name."""
    return [({"regulariser": PARTS[name](recipe, size)}, {"method": name}) for name in names]


def reading_cells(recipe: Recipe, names: Sequence[str] = tuple(READINGS)) -> list[Cell]:
    """LABO as each reading has it."""
    return [
        ({"regulariser": labo(recipe, **READINGS[name])}, {"method": "labo", "reading": name})
        for name in names
    ]
