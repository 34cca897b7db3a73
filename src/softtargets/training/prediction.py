"""What a net says about a split."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.models import Classifier
from softtargets.recipes import Recipe
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


def evaluate(recipe: Recipe, model: Classifier, split: Split, prepared: Prepared) -> dict[str, float]:
    """Negative log-likelihood and accuracy on a split."""
    predicted = predict(recipe, model, split, prepared)
    logits, labels = predicted["logits"], predicted["labels"]
    return {
        "loss": float(F.cross_entropy(logits, labels)),
        "accuracy": float((logits.argmax(-1) == labels).double().mean()),
    }
