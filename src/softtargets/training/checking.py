"""Refusing what cannot be trained before anything is trained."""

from __future__ import annotations

import torch

from softtargets.exceptions import RecipeError
from softtargets.recipes import ClassConditional, Crop, Information, Recipe, Shift
from softtargets.training.building import build_loss, build_model
from softtargets.training.informing import chosen_examples, stands_still
from softtargets.training.optimisers import make_update
from softtargets.training.preparation import Prepared, input_shape


def check_runnable(recipe: Recipe, prepared: Prepared, taught: Prepared | None) -> None:
    """Compare a recipe with its data (and its teacher's data, `taught`): batch, crops, net, noise, probes, teacher."""
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
    _check_noise(recipe, len(prepared.classes))
    build_loss(recipe, len(prepared.classes))
    _check_probes(recipe, prepared)
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


def _check_noise(recipe: Recipe, classes: int) -> None:
    if isinstance(recipe.noise, ClassConditional) and len(recipe.noise.matrix) != classes:
        raise RecipeError(
            f"is for {len(recipe.noise.matrix)} classes, but {recipe.data.name} has {classes}", "noise.matrix"
        )


def _check_probes(recipe: Recipe, prepared: Prepared) -> None:
    for position, probe in enumerate(recipe.probes):
        if not isinstance(probe, Information):
            continue
        last = len(prepared.classes) - 1
        for place, label in enumerate(probe.classes):
            if label > last:
                raise RecipeError(
                    f"{label} is no class of {recipe.data.name}, which has classes 0 to {last}",
                    f"probes.{position}.classes.{place}",
                )
        split = prepared.splits[probe.split]
        # The rarer class first: its number serves both.
        there, label = min(
            (len(chosen_examples(split, [each], probe.examples)), each) for each in probe.classes
        )
        if there < probe.examples:
            remedy = f"give at most {there}" if there else "look at another class or split"
            raise RecipeError(
                f"{probe.examples} of class {label} are wanted, and {probe.split} has {there or 'none'}; {remedy}",
                f"probes.{position}.examples",
            )
        if stands_still(recipe, prepared):
            raise RecipeError(
                "draws of the recipe's augmentation are all the same, so a logit difference has no noise to measure "
                "information against; give augmentation that changes images, or leave the probe out",
                f"probes.{position}",
            )


def _words(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{height} x {width} with {channels} channel{'s' if channels > 1 else ''}"
