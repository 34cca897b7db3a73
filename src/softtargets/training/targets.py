"""What a loss is given besides logits and labels: a teacher's, a partner's or an averaged net's logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from softtargets.losses import CSKD, BetaSmoothing, SoftTargetLoss, same_class_partners
from softtargets.models import Classifier
from softtargets.randomness import derive
from softtargets.recipes import Recipe
from softtargets.training.prediction import predict
from softtargets.training.preparation import Prepared, training_view


@dataclass
class Teacher:
    """A finished net that gives targets, and how it was shown images: its own recipe and standardisation."""

    recipe: Recipe
    model: Classifier
    prepared: Prepared


@dataclass(frozen=True)
class Shown:
    """What the net is shown in a step: augmented images, their labels, and their places in the training set."""

    step: int
    images: Tensor
    labels: Tensor
    chosen: Tensor


class Adviser(Protocol):
    """Somebody with an opinion on what the net is shown."""

    def ask(self, shown: Shown) -> Tensor:
        """Logits, one row for each image, without gradient."""


def adviser_for(
    recipe: Recipe, prepared: Prepared, model: Classifier, loss: SoftTargetLoss, teacher: Teacher | None
) -> Adviser | None:
    """Whom the recipe's loss wants to be asked, if anybody; Beta smoothing's average of the net begins here."""
    if teacher is not None:
        return TeacherAdviser(recipe, prepared, teacher)
    if isinstance(loss, CSKD):
        return PartnerAdviser(recipe, prepared, model)
    if isinstance(loss, BetaSmoothing):
        loss.attach(model)
        return AveragedAdviser(prepared, loss)
    return None


class TeacherAdviser:
    """The teacher of a distillation. One that sees fixed images says the same every epoch, so it is asked once."""

    def __init__(self, recipe: Recipe, prepared: Prepared, teacher: Teacher) -> None:
        train = prepared.splits["train"]
        self.teacher = teacher
        teacher.model.to(train.images.device).eval()
        self.stored: Tensor | None = None
        if not recipe.augmentation:
            self.stored = predict(teacher.recipe, teacher.model, train, teacher.prepared)["logits"]

    @torch.no_grad()
    def ask(self, shown: Shown) -> Tensor:
        """What the teacher says of the same images."""
        if self.stored is not None:
            return self.stored[shown.chosen]
        logits: Tensor = self.teacher.model(self.teacher.prepared.standardise(shown.images))
        return logits.float()


class PartnerAdviser:
    """For CS-KD: what the net itself says of other training images of the same classes, each drawn at random.

    As in the released code the second forward pass is in training mode, so batch normalisation counts it too.
    """

    def __init__(self, recipe: Recipe, prepared: Prepared, model: Classifier) -> None:
        self.recipe = recipe
        self.prepared = prepared
        self.model = model

    @torch.no_grad()
    def ask(self, shown: Shown) -> Tensor:
        """What the net says of the partners."""
        generator = torch.Generator().manual_seed(derive(self.recipe.seed, "partners", shown.step))
        train = self.prepared.splits["train"]
        partners = same_class_partners(shown.labels, train.labels, generator)
        images = training_view(self.recipe, train.images[partners], generator)
        logits: Tensor = self.model(self.prepared.standardise(images))
        return logits.float()


class AveragedAdviser:
    """For Beta smoothing: the average of the net over time, which the loss keeps."""

    def __init__(self, prepared: Prepared, loss: BetaSmoothing) -> None:
        self.prepared = prepared
        self.loss = loss

    def ask(self, shown: Shown) -> Tensor:
        """What the averaged net says of the same images."""
        return self.loss.ask(self.prepared.standardise(shown.images)).float()
