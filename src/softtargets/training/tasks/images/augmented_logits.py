"""What a net says of augmented examples: the samples that mutual information is estimated from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.randomness import key_words
from softtargets.recipes import Recipe
from softtargets.training.precision import autocast
from softtargets.training.tasks.images.split import Split
from softtargets.training.tasks.images.task import BATCH, ImageTask
from softtargets.training.tasks.task import Moment

# Purposes of their own: what the probe draws, the training never draws.
_PURPOSE = "information"
# Draws looked at to find augmentation that changes nothing, such as flips with probability 0.
_TRIALS = 4096


def chosen_examples(split: Split, classes: Sequence[int], examples: int) -> Tensor:
    """Places in a split of the first so many examples of each class, one class after another.

    By the labels as read, not those trained on: so that runs with other seeds and other label noise are looked at on
    the same examples.
    """
    return torch.cat([(split.clean_labels == label).nonzero().flatten()[:examples] for label in classes])


def stands_still(recipe: Recipe, task: ImageTask) -> bool:
    """Whether the recipe's augmentation does the same to every image, as far as many draws can tell."""
    drawn = task.view(recipe).draw(key_words(recipe.seed, _PURPOSE), torch.arange(_TRIALS), epoch=0)
    return all(bool((values == values[0]).all()) for kind in drawn for values in kind.values())


@torch.no_grad()
def augmented_differences(
    moment: Moment, split: str, classes: tuple[int, int], examples: int, draws: int
) -> Tensor:
    """Logit differences (examples of both classes, draws) of augmented images; the net is in evaluation mode.

    f(d(z_x)) of Müller et al. 2019, section 4, where d is the augmentation that the net is trained with. Draw l of
    example x at a step comes from the recipe's seed, "information", the split, l, x and the step, so that it is the
    same after a resume, and however many other draws and examples there are.
    """
    recipe, model, task = moment.recipe, moment.model, moment.task
    shown = task.splits[split]
    view = task.view(recipe)
    device = shown.images.device
    keys = torch.stack(
        [key_words(recipe.seed, f"{_PURPOSE}/{split}/{draw}", device) for draw in range(draws)]
    )
    places = chosen_examples(shown, classes, examples).expand(draws, -1)
    was_training = model.training
    model.eval()
    found = []
    # A block of examples at a time, all draws of each: as many images as evaluation shows at a time.
    for block in places.split(max(1, BATCH // draws), dim=1):
        stored = shown.at(block.flatten())
        sizes = None if stored.sizes is None else stored.sizes.unflatten(0, block.shape)
        images = view.apply(stored.images, view.draw(keys, block, moment.step, sizes))
        with autocast(recipe.precision, device):
            logits = model(task.standardise(images)).float()
        found.append(logits.unflatten(0, (draws, -1)))
    model.train(was_training)
    said = torch.cat(found, dim=1).double()
    first, second = classes
    return (said[..., first] - said[..., second]).T
