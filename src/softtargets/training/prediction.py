"""What a net says about a split."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.nets import Nets
from softtargets.training.precision import autocast
from softtargets.training.preparation import Prepared, Split, evaluation_view

BATCH = 1000


@torch.no_grad()
def predict(recipe: Recipe, model: Classifier, split: Split, prepared: Prepared) -> dict[str, Tensor]:
    """Logits, labels and penultimate activations, example by example, without augmentation.

    Where the recipe puts noise on the labels of this split, the clean ones lie beside them.
    """
    was_training = model.training
    model.eval()
    logits, features = [], []
    for images in split.images.split(BATCH):
        with autocast(recipe.precision, images.device):
            penultimate = model.features(prepared.standardise(evaluation_view(recipe, images)))
            logits.append(model.head(penultimate).float())
        features.append(penultimate.float())
    model.train(was_training)
    said = {"logits": torch.cat(logits), "labels": split.labels, "features": torch.cat(features)}
    return said if split.labels is split.clean_labels else said | {"clean_labels": split.clean_labels}


def images_at_a_time(runs: int, on_gpu: bool) -> int:
    """How many images so many runs, computed as one, are measured on at a time."""
    if not on_gpu:
        return BATCH
    # Every run of a stack sees them, and keeps what its layers say of them.
    return max(BATCH // 10, BATCH // (-(-runs // 16)))


@torch.no_grad()
def score(
    recipe: Recipe, nets: Nets, split: Split, prepared: Prepared, own: Tensor | None = None
) -> dict[str, Tensor]:
    """Negative log-likelihood and accuracy on a split, (runs,) each, still on the device.

    `own` (runs, examples) are labels of each run's own, where there is noise on the split; then ``clean_loss`` and
    ``clean_accuracy``, on the labels as read, are measured too.
    """
    judges = {"": split.labels.expand(nets.runs, -1)}
    if own is not None:
        judges = {"": own, "clean_": split.clean_labels.expand(nets.runs, -1)}
    losses: dict[str, list[Tensor]] = {prefix: [] for prefix in judges}
    correct: dict[str, list[Tensor]] = {prefix: [] for prefix in judges}
    size = images_at_a_time(nets.runs, split.images.is_cuda)
    for place, images in enumerate(split.images.split(size)):
        with autocast(recipe.precision, images.device):
            logits = nets.look(prepared.standardise(evaluation_view(recipe, images)), shared=True).float()
        for prefix, judge in judges.items():
            labels = judge[:, place * size : (place + 1) * size]
            each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
            losses[prefix].append(each.unflatten(0, (nets.runs, -1)).double().sum(-1))
            correct[prefix].append((logits.argmax(-1) == labels).sum(-1))
    found = {}
    for prefix in judges:
        found[f"{prefix}loss"] = torch.stack(losses[prefix]).sum(0) / len(split)
        found[f"{prefix}accuracy"] = torch.stack(correct[prefix]).sum(0).double() / len(split)
    return found
