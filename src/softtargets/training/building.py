"""From the names in a recipe to live objects: net, loss, optimiser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from softtargets.exceptions import RecipeError
from softtargets.losses import REGULARISERS, SoftTargetLoss
from softtargets.models import MODELS, Classifier
from softtargets.noise import TRANSITIONS
from softtargets.randomness import derive
from softtargets.recipes import (
    SGD,
    Adam,
    ForwardCorrection,
    KnowledgeRefinery,
    OnlineLabelSmoothing,
    Optimiser,
    Part,
    Recipe,
)


def build_model(recipe: Recipe, shape: tuple[int, int, int], classes: int) -> Classifier:
    """The net with its initial weights, made on the CPU so that every device starts from the same ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(recipe.seed, "init"))
        try:
            return MODELS[recipe.model.name](shape=shape, classes=classes, **_options(recipe.model))
        except ValueError as error:
            raise RecipeError(str(error), "model") from None


def build_loss(recipe: Recipe, classes: int) -> SoftTargetLoss:
    """The loss the regulariser names, in training mode; a teacher is the training loop's business."""
    part = recipe.regulariser
    options = _options(part)
    options.pop("teacher", None)
    try:
        if isinstance(part, (OnlineLabelSmoothing, KnowledgeRefinery)):
            options["classes"] = classes
        if isinstance(part, ForwardCorrection):
            transitions = TRANSITIONS[recipe.noise.name](classes=classes, **_options(recipe.noise))
            options["matrix"] = torch.from_numpy(transitions).float()
        return REGULARISERS[part.name](**options)
    except ValueError as error:
        raise RecipeError(str(error), "regulariser") from None


def build_optimiser(optimiser: Optimiser, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The torch optimiser at the full learning rate; the schedule moves it."""
    options = _options(optimiser)
    if isinstance(optimiser, SGD):
        return torch.optim.SGD(parameters, **options)
    if isinstance(optimiser, Adam):
        kind = torch.optim.AdamW if options.pop("decoupled") else torch.optim.Adam
        return kind(parameters, **options)
    raise TypeError(f"no rule for the optimiser {optimiser!r}")


def _options(part: Part) -> dict[str, Any]:
    return {key: value for key, value in vars(part).items() if key != "name"}
