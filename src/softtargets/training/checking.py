"""Refusing what cannot be trained before anything is trained."""

from __future__ import annotations

import torch

from softtargets.exceptions import RecipeError
from softtargets.recipes import Crop, Recipe, Shift
from softtargets.training.building import build_loss, build_model
from softtargets.training.optimisers import make_update
from softtargets.training.preparation import Prepared, input_shape


def check_runnable(recipe: Recipe, prepared: Prepared, taught: Prepared | None) -> None:
    """Compare a recipe with its data (and its teacher's data, `taught`): batch, crops, net, teacher."""
    examples = len(prepared.splits["train"])
    if recipe.batch > examples:
        raise RecipeError(f"{recipe.batch} is larger than the training set of {examples} examples", "batch")
    _check_margins(recipe, prepared)
    shape = input_shape(recipe, prepared)
    with torch.device("meta"):  # shapes only: a large net costs nothing here
        model = build_model(recipe, shape, len(prepared.classes))
    try:
        make_update([recipe.optimiser], [name for name, _ in model.named_parameters()], lead=0)
    except ValueError as error:
        raise RecipeError(str(error), "optimiser") from None
    build_loss(recipe, len(prepared.classes))
    if recipe.teacher is None or taught is None:
        return
    if recipe.augmentation:
        # The teacher is asked about the very images the student sees.
        shown, learnt = shape, input_shape(recipe.teacher, taught)
    else:
        shown, learnt = prepared.shape, taught.shape
    if shown != learnt:
        raise RecipeError(
            f"the student of run {recipe.id} is shown images of {_words(shown)}, but its teacher learnt on "
            f"{_words(learnt)}; give both the same size and crop",
            "regulariser.teacher",
        )


def _check_margins(recipe: Recipe, prepared: Prepared) -> None:
    _, height, width = prepared.shape
    for position, part in enumerate(recipe.augmentation):
        field, margin = ("pixels", part.pixels) if isinstance(part, Shift) else ("padding", 0)
        margin = part.padding if isinstance(part, Crop) else margin
        if margin >= min(height, width):
            raise RecipeError(
                f"{margin} is as large as the image of {height} x {width} itself",
                f"augmentation.{position}.{field}",
            )


def _words(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{height} x {width} with {channels} channel{'s' if channels > 1 else ''}"
