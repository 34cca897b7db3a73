"""Refusing what cannot be trained on images, before anything is trained."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from softtargets.exceptions import RecipeError
from softtargets.recipes import (
    BLEU,
    ClassConditional,
    Crop,
    ImageFiles,
    Information,
    Instance,
    Recipe,
    ResizedCrop,
    Shift,
    Transformer,
)
from softtargets.training.building import check_rows
from softtargets.training.devices import free_memory
from softtargets.training.sizing import outline
from softtargets.training.tasks.images.augmented_logits import chosen_examples, stands_still
from softtargets.training.tasks.images.keeping import SHARE
from softtargets.training.tasks.images.task import ImageTask
from softtargets.training.tasks.task import Task
from softtargets.training.teaching import asked_through

_ONE_VALUE = "more than 1 value per channel"  # what torch says of it


def check_images(recipe: Recipe, task: ImageTask, taught: Task | None) -> None:
    """Compare a recipe with its data (and its teacher's data, `taught`): batch, crops, noise, probes, teacher."""
    if isinstance(recipe.model, Transformer):
        raise RecipeError(
            f"{recipe.model.name} is a network for translation, but {recipe.data.name} has images; choose another "
            "network",
            "model",
        )
    examples = len(task.splits["train"])
    if recipe.batch > examples:
        raise RecipeError(f"{recipe.batch} is larger than the training set of {examples} examples", "batch")
    _check_pictures(recipe)
    _check_margins(recipe, task)
    task.input_shape(recipe)  # refuses crops that cannot be cut
    if isinstance(recipe.noise, ClassConditional):
        check_rows(recipe.noise.matrix, "noise.matrix", recipe, len(task.classes))
    _check_probes(recipe, task)
    if recipe.teacher is not None and isinstance(taught, ImageTask):
        _check_teacher(recipe, recipe.teacher, task, taught)
    _check_single_images(recipe, examples, task)


def _check_single_images(recipe: Recipe, examples: int, task: ImageTask) -> None:
    """Batch norms of vectors (and of maps of one pixel) need two images; one may be left over for the last batch."""
    batch = recipe.batch
    if batch > 1 and examples % batch != 1:
        return
    model = outline(recipe, task).train()
    if not any(isinstance(each, _BatchNorm) for each in model.modules()):
        return
    try:
        model.draw_from(torch.zeros(3, dtype=torch.int64, device="meta"))
        with torch.no_grad():
            model(*task.blank(recipe, 1, torch.device("meta")))
    except ValueError as error:
        if _ONE_VALUE not in str(error):
            return  # what else is wrong is said where the net is made
    except Exception:  # nets that are not ours may ask a tensor for its values, and fail in any way
        return
    else:
        return
    which = "every batch has" if batch == 1 else "the last batch of an epoch has"
    others = [each for each in range(2, examples + 1) if examples % each != 1]
    remedy = f"; a batch of {min(others, key=lambda each: abs(each - batch))} leaves more" if others else ""
    raise RecipeError(
        f"of {examples} training examples in batches of {batch}, {which} a single one, and batch norm of "
        f"{recipe.model.name} has one value for each channel then, which cannot be normalised{remedy}",
        "batch",
    )


def _check_teacher(recipe: Recipe, teacher: Recipe, task: ImageTask, taught: ImageTask) -> None:
    """Refuse images that the teacher's network cannot take: most take one size, those that pool all places any."""
    by_the_student = asked_through(recipe) is recipe
    _check_stored(recipe, task)
    shown, learnt = task.shape, taught.shape
    if by_the_student:  # the teacher is asked about the very images the student sees
        shown, learnt = task.input_shape(recipe), taught.input_shape(teacher)
    if shown == learnt or (by_the_student and _takes(teacher, recipe, task, taught)):
        return
    remedy = "give both the same size and crop"
    if by_the_student and task.shape == taught.shape:
        remedy += (
            ", or show the teacher its own views of the images (regulariser.view: teacher) or the images without "
            "augmentation (regulariser.view: stored)"
        )
    raise RecipeError(
        f"the student of run {recipe.id} sees images of {_words(shown)}, but its teacher learnt on {_words(learnt)}, "
        f"and the teacher's network, {teacher.model.name}, takes no others; {remedy}",
        "regulariser.teacher",
    )


def _check_stored(recipe: Recipe, task: ImageTask) -> None:
    """What a teacher says of fixed images lies on the device, and of millions of them that is gigabytes."""
    if not task.is_streamed or asked_through(recipe) is not None:
        return
    needed, free = task.advice_bytes(recipe, 0), free_memory(task.splits["train"].labels.device)
    if free is not None and needed > SHARE * free:
        raise RecipeError(
            f"what a teacher says of {len(task.splits['train'])} images and {len(task.classes)} classes takes "
            f"{needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free; ask it in every step instead, about the "
            "student's own views of the images (give the student augmentation, and regulariser.view: student)",
            "regulariser.view",
        )


def _takes(teacher: Recipe, student: Recipe, task: ImageTask, taught: ImageTask) -> bool:
    """Whether the teacher's network has the same weights for images of the student's size."""

    def weights(recipe: Recipe, own: ImageTask) -> dict[str, torch.Size]:
        return {name: value.shape for name, value in outline(recipe, own).state_dict().items()}

    try:
        other = weights(teacher.replace({"augmentation": student.augmentation}), task)
    except RecipeError:  # too small for its layers
        return False
    return other == weights(teacher, taught)


def _check_pictures(recipe: Recipe) -> None:
    """Pictures of many sizes have to become one before anything else is done with them."""
    if not isinstance(recipe.data, ImageFiles) or recipe.data.keep != "picture":
        return
    if not recipe.augmentation or not isinstance(recipe.augmentation[0], ResizedCrop):
        raise RecipeError(
            "picture keeps images of many sizes, which resized_crop must cut to one size first; put resized_crop "
            "first in the augmentation, or give keep: middle",
            "data.keep",
        )
    if isinstance(recipe.noise, Instance):
        raise RecipeError(
            f"{recipe.noise.name} noise compares all images, which is impossible for images of many sizes; give "
            "keep: middle, or noise that depends on the class only",
            "noise",
        )


def _check_margins(recipe: Recipe, task: ImageTask) -> None:
    _, height, width = task.shape
    for position, part in enumerate(recipe.augmentation):
        field, margin = ("pixels", part.pixels) if isinstance(part, Shift) else ("padding", 0)
        margin = part.padding if isinstance(part, Crop) else margin
        if margin >= min(height, width):
            raise RecipeError(
                f"{margin} is too large for images of {height} x {width}; give less",
                f"augmentation.{position}.{field}",
            )


def _check_probes(recipe: Recipe, task: ImageTask) -> None:
    for position, probe in enumerate(recipe.probes):
        if isinstance(probe, BLEU):
            raise RecipeError(
                f"{probe.name} is for translations, but {recipe.data.name} has images; leave it out",
                f"probes.{position}",
            )
        if not isinstance(probe, Information):
            continue
        last = len(task.classes) - 1
        for place, label in enumerate(probe.classes):
            if label > last:
                raise RecipeError(
                    f"{label} is not a class of {recipe.data.name}, which has classes 0 to {last}",
                    f"probes.{position}.classes.{place}",
                )
        split = task.splits[probe.split]
        # The rarer class first: its number serves both.
        there, label = min(
            (len(chosen_examples(split, [each], probe.examples)), each) for each in probe.classes
        )
        if there < probe.examples:
            remedy = f"give at most {there}" if there else "look at another class or split"
            raise RecipeError(
                f"{probe.examples} examples of class {label} are needed, but {probe.split} has {there or 'none'}; "
                f"{remedy}",
                f"probes.{position}.examples",
            )
        if stands_still(recipe, task):
            raise RecipeError(
                "the recipe's augmentation never changes an image, so the logit difference has no noise, which the "
                "information needs; give augmentation that changes images, or leave the probe out",
                f"probes.{position}",
            )


def _words(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{height} x {width} with {channels} channel{'s' if channels > 1 else ''}"
