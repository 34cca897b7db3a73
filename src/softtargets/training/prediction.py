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
    """Logits, labels and penultimate activations, example by example, without augmentation."""
    was_training = model.training
    model.eval()
    logits, features = [], []
    for images in split.images.split(BATCH):
        with autocast(recipe.precision, images.device):
            penultimate = model.features(prepared.standardise(evaluation_view(recipe, images)))
            logits.append(model.head(penultimate).float())
        features.append(penultimate.float())
    model.train(was_training)
    return {"logits": torch.cat(logits), "labels": split.labels, "features": torch.cat(features)}


def images_at_a_time(runs: int, on_gpu: bool) -> int:
    """How many images so many runs, computed as one, are measured on at a time."""
    if not on_gpu:
        return BATCH
    # Every run of a stack sees them, and keeps what its layers say of them.
    return max(BATCH // 10, BATCH // (-(-runs // 16)))


@torch.no_grad()
def score(recipe: Recipe, nets: Nets, split: Split, prepared: Prepared) -> dict[str, Tensor]:
    """Negative log-likelihood and accuracy on a split, (runs,) each, still on the device."""
    losses, correct = [], []
    size = images_at_a_time(nets.runs, split.images.is_cuda)
    for images, labels in zip(split.images.split(size), split.labels.split(size), strict=True):
        with autocast(recipe.precision, images.device):
            logits = nets.look(prepared.standardise(evaluation_view(recipe, images)), shared=True).float()
        runs = len(logits)
        each = F.cross_entropy(logits.flatten(0, 1), labels.repeat(runs), reduction="none")
        losses.append(each.unflatten(0, (runs, -1)).double().sum(-1))
        correct.append((logits.argmax(-1) == labels).sum(-1))
    return {
        "loss": torch.stack(losses).sum(0) / len(split),
        "accuracy": torch.stack(correct).sum(0).double() / len(split),
    }
