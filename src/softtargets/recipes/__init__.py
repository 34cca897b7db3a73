"""Recipes: frozen, validated, readable descriptions of one training. Nothing here imports torch."""

from softtargets.recipes.corruptions import Augmentation, Clean, Crop, Flip, Noise, Pair, Shift, Symmetric
from softtargets.recipes.datasets import (
    CIFAR10,
    CIFAR100,
    CUB200,
    EMNIST,
    MNIST,
    Dataset,
    Digits,
    FashionMNIST,
    ImageNet,
    TinyImageNet,
)
from softtargets.recipes.models import CNN, MLP, Model
from softtargets.recipes.optimisation import SGD, Adam, Constant, Cosine, Linear, Optimiser, Schedule, Step
from softtargets.recipes.recipe import Recipe
from softtargets.recipes.regularisers import CrossEntropy, Distillation, LabelSmoothing, Regulariser
from softtargets.recipes.schema import Part, build, describe, kinds

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "CNN",
    "CUB200",
    "EMNIST",
    "MLP",
    "MNIST",
    "SGD",
    "Adam",
    "Augmentation",
    "Clean",
    "Constant",
    "Cosine",
    "Crop",
    "CrossEntropy",
    "Dataset",
    "Digits",
    "Distillation",
    "FashionMNIST",
    "Flip",
    "ImageNet",
    "LabelSmoothing",
    "Linear",
    "Model",
    "Noise",
    "Optimiser",
    "Pair",
    "Part",
    "Recipe",
    "Regulariser",
    "Schedule",
    "Shift",
    "Step",
    "Symmetric",
    "TinyImageNet",
    "build",
    "describe",
    "kinds",
]
