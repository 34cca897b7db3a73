"""From the names in a recipe to live objects: net and loss."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError
from softtargets.losses import REGULARISERS, SoftTargetLoss
from softtargets.models import MODELS, Classifier
from softtargets.noise import TRANSITIONS
from softtargets.randomness import derive
from softtargets.recipes import ForwardCorrection, LabelSmoothing, Recipe, Regulariser

if TYPE_CHECKING:
    from softtargets.training.tasks.task import Task


def build_model(recipe: Recipe, task: Task) -> Classifier:
    """The net with its initial weights, made on the CPU so that every device starts from the same ones."""
    arguments = task.net_arguments(recipe)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(recipe.seed, "init"))
        try:
            return MODELS[recipe.model.name](**arguments, **vars(recipe.model))
        except ValueError as error:
            raise RecipeError(str(error), "model") from None


def build_loss(
    recipe: Recipe, classes: int, numbers_as_tensors: bool = False, frequencies: Tensor | None = None
) -> SoftTargetLoss:
    """The loss the regulariser names, in training mode; `frequencies` are those of the classes as labels."""
    part = recipe.regulariser
    # Who teaches, and about which images, is the training loop's business.
    options = {name: value for name, value in vars(part).items() if name not in ("teacher", "view")}
    if isinstance(part, LabelSmoothing) and part.matrix is not None:
        check_rows(part.matrix, "regulariser.matrix", recipe, classes)
        options["matrix"] = torch.tensor(part.matrix, dtype=torch.float32)
    if isinstance(part, LabelSmoothing):
        options["prior"] = _prior(recipe, part.prior, frequencies)
    if numbers_as_tensors:
        options |= {name: torch.as_tensor(options[name], dtype=torch.float32) for name in free_numbers(part)}
    try:
        if "classes" in inspect.signature(REGULARISERS[part.name]).parameters:
            options["classes"] = classes
        if isinstance(part, ForwardCorrection):
            transitions = TRANSITIONS[recipe.noise.name](classes=classes, **recipe.noise.options())
            options["matrix"] = torch.from_numpy(transitions).float()
        loss = REGULARISERS[part.name](**options)
    except ValueError as error:
        raise RecipeError(str(error), "regulariser") from None
    loss.sync_on_end_epoch = False  # every process trains runs of its own
    return loss


def _prior(recipe: Recipe, name: str, frequencies: Tensor | None) -> Tensor | None:
    """Where label smoothing moves mass to; nothing means everywhere alike."""
    if name == "uniform":
        return None
    if frequencies is None:
        raise RecipeError(
            f"{name} needs the number of labels of each class, which is not counted for {recipe.data.name}; choose "
            "another prior",
            "regulariser.prior",
        )
    return frequencies.float().cpu()


def check_rows(matrix: Sequence[Sequence[float]], field: str, recipe: Recipe, classes: int) -> None:
    """Refuse a matrix of another number of classes than the data have."""
    if len(matrix) != classes:
        raise RecipeError(f"is for {len(matrix)} classes, but {recipe.data.name} has {classes}", field)


def free_numbers(part: Regulariser) -> set[str]:
    """The hyper-parameters that a loss takes as tensors, numbers and matrices, and so one for each run of a pack."""
    parameters = inspect.signature(REGULARISERS[part.name]).parameters
    given = vars(part).items()
    return {
        name
        for name, value in given
        if isinstance(value, (float, tuple)) and "Tensor" in str(parameters[name].annotation)
    }
