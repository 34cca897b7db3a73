"""What a loss is given besides logits and labels: a teacher's, a partner's or an averaged net's logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.data.augment import View
from softtargets.exceptions import RunError
from softtargets.losses import BetaSmoothing
from softtargets.models import Classifier
from softtargets.randomness import key_words, stacked_keys
from softtargets.recipes import Recipe
from softtargets.training.nets import Forward, Nets, Single, Stacked
from softtargets.training.packing import stacks
from softtargets.training.precision import autocast
from softtargets.training.tasks.images.feed import ShownImages
from softtargets.training.tasks.images.partners import Partners
from softtargets.training.tasks.images.split import Split
from softtargets.training.tasks.images.streaming import Streamed
from softtargets.training.tasks.images.task import ImageTask
from softtargets.training.tasks.task import Teacher, Teachers
from softtargets.training.teaching import asked_through

# The purpose that a teacher's own views are drawn for.
_OWN_VIEW = "teacher's augmentation"
# So far beyond any step that a second forward pass in the same step draws other dropout.
_SECOND_PASS = 1 << 31


class TeacherAdviser:
    """The teachers of a pack, one for each run that has one.

    A teacher that sees fixed images says the same every epoch, so it is asked once. Others are asked in every step,
    about the student's images or about views of their own. Those are drawn for the example and the student's epoch from
    the student's seed, so that they do not depend on who else is in the pack, nor on where a training was resumed.
    """

    def __init__(self, recipes: Sequence[Recipe], task: ImageTask, teachers: Teachers, stacked: bool) -> None:
        train = task.splits["train"]
        device = train.images.device
        there = [teacher for teacher in teachers if teacher is not None]
        self._first = there[0]
        self.stored: Tensor | None = None
        self._view: View | None = None
        through = asked_through(recipes[0])
        if through is None:
            # Runs without a teacher are given what the first one says; their losses do not ask for it.
            asked = {id(teacher): teacher for teacher in there}
            whose = [list(asked).index(id(teacher or there[0])) for teacher in teachers]
            self._whose = torch.tensor(whose, device=device)
            self.stored = torch.stack([_said_of(train, each) for each in asked.values()])
            return
        # One for each run, which all have one: they are asked about different images.
        models = [teacher.network().to(device).eval() for teacher in there]
        self._nets = _asked(self._first.recipe, models, stacked)
        if through is not recipes[0]:
            self._view = self._first.task.view(through)
            self._train = train
            self._view_keys = stacked_keys([recipe.seed for recipe in recipes], _OWN_VIEW, device)

    @torch.no_grad()
    def ask(self, shown: ShownImages, steps: Tensor, epochs: Tensor) -> Tensor:
        """What the teachers say of the same examples."""
        if self.stored is not None:
            return self.stored[self._whose[:, None], shown.chosen]
        flat = self._first.task.standardise(self._seen(shown, epochs))
        images = flat.unflatten(0, shown.chosen.shape)
        with autocast(self._first.recipe.precision, flat.device):
            each = zip(self._nets, images.split(len(images) // len(self._nets)), strict=True)
            said = [nets.look((own,), shared=False) for nets, own in each]
        return torch.cat(said).float()

    def _seen(self, shown: ShownImages, epochs: Tensor) -> Tensor:
        """The images of all runs, one after another, as the teachers see them."""
        if self._view is None:
            return shown.images.flatten(0, 1)
        stored = shown.stored
        if stored is None:
            stored = self._train.at(shown.chosen.flatten())
        sizes = None if stored.sizes is None else stored.sizes.unflatten(0, shown.chosen.shape)
        return self._view.apply(stored.images, self._view.draw(self._view_keys, shown.chosen, epochs, sizes))


def _said_of(train: Split, teacher: Teacher) -> Tensor:
    """What a teacher says of training images without augmentation: as its run kept it, or its network asked now."""
    if teacher.kept is None:
        said: Tensor = teacher.task.say(teacher.recipe, teacher.network(), train, features=False)["logits"]
        return said.to(train.images.device)
    if not _same_images(teacher.task.splits["train"], train):
        raise RunError(
            f"run {teacher.recipe.id} has no weights, and its stored predictions are not for the student's training "
            "images; give both the same data, or train the teacher again"
        )
    return teacher.kept.to(train.images.device)


def _same_images(one: Split, other: Split) -> bool:
    if isinstance(one.images, Streamed) or isinstance(other.images, Streamed):
        return isinstance(one.images, Streamed) and one.images.same(other.images)
    return torch.equal(one.images, other.images)


def _asked(recipe: Recipe, models: Sequence[Classifier], stacked: bool) -> list[Nets]:
    """Teachers as one where a student says the same in any company then, else one after another."""
    device = next(models[0].parameters()).device
    keys = torch.zeros(len(models), 2, dtype=torch.int64, device=device)
    if not stacked or device.type == "cpu":
        return [Stacked(models, keys, None) if stacked else Single(models[0], keys, None)]
    if stacks(recipe.model.name, 0, recipe.precision, on_cpu=False):
        low = torch.bfloat16 if recipe.precision == "bf16" else None
        return [Stacked(models, keys, Forward(models[0], True, worth=lambda shape: True), low)]
    return [Single(model, key, None) for model, key in zip(models, keys.split(1), strict=True)]


class PartnerAdviser:
    """For CS-KD: what the net itself says of other training images of the same classes, each drawn at random.

    As in the released code the second forward pass is in training mode, so batch normalisation counts it too.
    """

    def __init__(self, recipe: Recipe, task: ImageTask, nets: Nets) -> None:
        self._task = task
        self._nets = nets
        self._train = task.splits["train"]
        labels = self._train.labels
        self._view = task.view(recipe)
        self._partners = Partners(recipe.seed, labels, len(task.classes))
        self._view_key = key_words(recipe.seed, "partners' augmentation", labels.device)

    @torch.no_grad()
    def ask(self, shown: ShownImages, steps: Tensor, epochs: Tensor) -> Tensor:
        """What the net says of the partners."""
        chosen = shown.chosen[0]
        stored = shown.partners
        if stored is None:
            stored = self._train.at(self._partners.of(chosen, epochs))
        # By the place of the anchor: two anchors may have the same partner.
        views = self._view.draw(self._view_key, chosen, epochs[0], stored.sizes)
        images = self._view.apply(stored.images, views)
        self._nets.set_place(steps + _SECOND_PASS)
        logits = self._nets.train((self._task.standardise(images).unsqueeze(0),))
        self._nets.set_place(steps)
        return logits.float()


class AveragedAdviser:
    """For Beta smoothing: the average of the net over time, which the loss keeps."""

    def __init__(self, task: ImageTask, loss: BetaSmoothing) -> None:
        self._task = task
        self._loss = loss

    def ask(self, shown: ShownImages, steps: Tensor, epochs: Tensor) -> Tensor:
        """What the averaged net says of the same images."""
        return self._loss.ask(self._task.standardise(shown.images[0])).float().unsqueeze(0)
