"""What a loss is given besides logits and labels: a teacher's, a partner's or an averaged net's logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from softtargets.losses import CSKD, BetaSmoothing, SoftTargetLoss
from softtargets.models import Classifier
from softtargets.randomness import below, key_words, words
from softtargets.recipes import Recipe
from softtargets.training.nets import Nets, Single, Stacked
from softtargets.training.precision import autocast
from softtargets.training.prediction import predict
from softtargets.training.preparation import Prepared, view_of

# So far beyond any step that a second forward pass in the same step draws other dropout.
_SECOND_PASS = 1 << 31


@dataclass
class Teacher:
    """A finished net that gives targets, and how it was shown images: its own recipe and standardisation."""

    recipe: Recipe
    model: Classifier
    prepared: Prepared


@dataclass(frozen=True)
class Shown:
    """What the nets are shown in a step, each run its own: augmented images, labels, places in the training set."""

    steps: Tensor
    epochs: Tensor
    images: Tensor
    labels: Tensor
    chosen: Tensor


class Adviser(Protocol):
    """Somebody with an opinion on what the nets are shown."""

    def ask(self, shown: Shown) -> Tensor:
        """Logits (runs, batch, classes), without gradient."""


def lone_adviser(recipe: Recipe, prepared: Prepared, nets: Nets, loss: SoftTargetLoss) -> Adviser | None:
    """Whom the loss of a run without teacher wants to be asked, if anybody."""
    if isinstance(loss, CSKD):
        return PartnerAdviser(recipe, prepared, nets)
    if isinstance(loss, BetaSmoothing):
        return AveragedAdviser(prepared, loss)
    return None


class TeacherAdviser:
    """The teachers of a pack, one for each run that has one.

    A teacher that sees fixed images says the same every epoch, so it is asked once.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        prepared: Prepared,
        teachers: Sequence[Teacher | None],
        stacked: bool,
    ) -> None:
        train = prepared.splits["train"]
        device = train.images.device
        taught = list({id(teacher): teacher for teacher in teachers if teacher is not None}.values())
        # Runs without a teacher are given what the first one says; their losses do not ask for it.
        self._whose = torch.tensor(
            [0 if teacher is None else taught.index(teacher) for teacher in teachers], device=device
        )
        self._teachers = taught
        self._precision = taught[0].recipe.precision
        self.stored: Tensor | None = None
        self._nets: Nets | None = None
        for teacher in taught:
            teacher.model.to(device).eval()
        if recipes[0].augmentation:
            keys = torch.zeros(len(taught), 2, dtype=torch.int64, device=device)
            # One for each run, which all have one: they are asked about different images.
            models = [teacher.model for teacher in teachers if teacher is not None]
            keys = keys.new_zeros(len(models), 2)
            self._nets = Stacked(models, keys, None) if stacked else Single(models[0], keys, None)
        else:
            said = [predict(each.recipe, each.model, train, each.prepared)["logits"] for each in taught]
            self.stored = torch.stack(said)

    @torch.no_grad()
    def ask(self, shown: Shown) -> Tensor:
        """What the teachers say of the same images."""
        if self.stored is not None:
            return self.stored[self._whose[:, None], shown.chosen]
        assert self._nets is not None
        runs, batch = shown.images.shape[:2]
        images = (
            self._teachers[0].prepared.standardise(shown.images.flatten(0, 1)).unflatten(0, (runs, batch))
        )
        with autocast(self._precision, images.device):
            return self._nets.look(images, shared=False).float()


class PartnerAdviser:
    """For CS-KD: what the net itself says of other training images of the same classes, each drawn at random.

    As in the released code the second forward pass is in training mode, so batch normalisation counts it too.
    """

    def __init__(self, recipe: Recipe, prepared: Prepared, nets: Nets) -> None:
        self.recipe = recipe
        self.prepared = prepared
        self.nets = nets
        labels = prepared.splits["train"].labels
        self._view = view_of(recipe, prepared)
        self._partner_key = key_words(recipe.seed, "partners", labels.device)
        self._view_key = key_words(recipe.seed, "partners' augmentation", labels.device)
        # Members of each class side by side, so that a partner is one draw below the size of the class.
        self._members = labels.argsort(stable=True)
        self._sizes = torch.bincount(labels, minlength=len(prepared.classes))
        self._starts = self._sizes.cumsum(0) - self._sizes

    @torch.no_grad()
    def ask(self, shown: Shown) -> Tensor:
        """What the net says of the partners."""
        train = self.prepared.splits["train"]
        labels, chosen = shown.labels[0], shown.chosen[0]
        drawn = words(self._partner_key, chosen, shown.epochs)[:, 0]
        partners = self._members[self._starts[labels] + below(drawn, self._sizes[labels])]
        # By the place of the anchor: two anchors may have the same partner.
        views = self._view.draw(self._view_key, chosen, shown.epochs[0])
        images = self._view.apply(train.images[partners], views)
        self.nets.set_place(shown.steps + _SECOND_PASS)
        logits = self.nets.train(self.prepared.standardise(images).unsqueeze(0))
        self.nets.set_place(shown.steps)
        return logits.float()


class AveragedAdviser:
    """For Beta smoothing: the average of the net over time, which the loss keeps."""

    def __init__(self, prepared: Prepared, loss: BetaSmoothing) -> None:
        self.prepared = prepared
        self.loss = loss

    def ask(self, shown: Shown) -> Tensor:
        """What the averaged net says of the same images."""
        return self.loss.ask(self.prepared.standardise(shown.images[0])).float().unsqueeze(0)
