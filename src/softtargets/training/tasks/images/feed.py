"""The images of a pack: which batch holds what, how it is augmented, and how nets do on the other splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.randomness import permutation, stacked_keys
from softtargets.recipes import Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets
from softtargets.training.precision import autocast
from softtargets.training.sums import run_sums
from softtargets.training.tasks.images.split import Split
from softtargets.training.tasks.images.streaming import Pictures
from softtargets.training.tasks.images.task import ImageTask
from softtargets.training.tasks.task import Feed, Shown

Views = list[dict[str, Tensor]]
IGNORED = -100  # a label that does not count


@dataclass(frozen=True)
class ShownImages(Shown):
    """A batch with the images before they were standardised, and their places in the training set.

    Where images are streamed, what was brought of them comes along: as they are stored and, for losses that look at
    others of the same class, the partners.
    """

    images: Tensor
    chosen: Tensor
    stored: Pictures | None = None
    partners: Pictures | None = None


class ImageFeed(Feed):
    """Draws orders and augmentation of each run by its seed, and gathers images that all runs share."""

    def __init__(self, recipes: Sequence[Recipe], tasks: Sequence[ImageTask], machinery: Machinery) -> None:
        self._recipe, self._task = recipes[0], tasks[0]  # for what all have in common
        self._machinery, self._share = machinery, machinery.share
        train = self._task.splits["train"]
        assert isinstance(train.images, Tensor)
        self._images, self._sizes = train.images, train.sizes
        self._labels = torch.stack([each.splits["train"].labels for each in tasks])
        # Held-out labels differ between runs only where some recipe corrupts them.
        noisy = [name for name in self._task.splits if name != "train"]
        noisy = noisy if any(recipe.noise.on_held_out for recipe in recipes) else []
        self._own = {name: torch.stack([each.splits[name].labels for each in tasks]) for name in noisy}
        view, standardise = self._task.view(self._recipe), self._task.standardise

        def inputs(images: Tensor, chosen: Tensor, views: Views) -> tuple[Tensor, Tensor]:
            shown = view.apply(images[chosen], views)
            return shown, standardise(shown)

        self._view, self._plain = view, inputs
        self._compiled = machinery.compiled(inputs)
        seeds, device = [recipe.seed for recipe in recipes], self._images.device
        self._order_keys = stacked_keys(seeds, "order", device)
        self._view_keys = stacked_keys(seeds, "augmentation", device)
        self._order = torch.zeros(len(seeds), len(self._images), dtype=torch.int64, device=device)
        self._epoch_labels = torch.zeros_like(self._order)
        self._views: Views = self._drawn(self._order[:, 0])
        self._within = torch.arange(self._recipe.batch, device=device)

    def open(self, epochs: Tensor) -> None:
        """Orders, labels in that order, and augmentation."""
        self._order.copy_(permutation(self._order_keys, len(self._images), epochs))
        self._epoch_labels.copy_(self._labels.gather(1, self._order))
        for table, drawn in zip(self._views, self._drawn(epochs), strict=True):
            for name, values in drawn.items():
                table[name].copy_(values)

    def _drawn(self, epochs: Tensor) -> Views:
        sizes = None if self._sizes is None else self._sizes[self._order]
        return self._view.draw(self._view_keys, self._order, epochs, sizes)

    def batch(self, place: Tensor, shape: int) -> ShownImages:
        """So many images."""
        own = self._share.rows(shape)
        idle = own.start == own.stop  # more processes than images: one that does not count
        where = place * self._recipe.batch + self._within[slice(0, 1) if idle else own]
        chosen, labels = self._order.index_select(1, where), self._epoch_labels.index_select(1, where)
        labels = torch.full_like(labels, IGNORED) if idle else labels
        views = [
            {name: values.index_select(1, where).flatten() for name, values in drawn.items()}
            for drawn in self._views
        ]
        make = self._compiled if shape == self._recipe.batch else self._plain
        images, inputs = (
            each.unflatten(0, chosen.shape) for each in make(self._images, chosen.flatten(), views)
        )
        return ShownImages((inputs,), labels, images, chosen)

    def score(self, nets: Nets) -> dict[str, Tensor]:
        """Negative log-likelihood and accuracy; on noisy labels, and on the same labels as read (``clean_loss``)."""
        found: dict[str, Tensor] = {}
        for name, split in self._task.splits.items():
            if name != "train":
                judges = {name: split.labels.expand(nets.runs, -1)}
                if name in self._own:
                    judges = {
                        name: self._own[name],
                        f"{name}_clean": split.clean_labels.expand(nets.runs, -1),
                    }
                found |= self._judged(nets, split, judges)
        return found

    @torch.no_grad()
    def _judged(self, nets: Nets, split: Split, judges: dict[str, Tensor]) -> dict[str, Tensor]:
        """By all these labels (runs, examples), still on the device: (runs,) each."""
        losses: dict[str, list[Tensor]] = {name: [] for name in judges}
        correct: dict[str, list[Tensor]] = {name: [] for name in judges}
        own = self._share
        size = self._task.measured_at_a_time(nets.runs, self._images.is_cuda)
        size = min(size, -(-len(split) // own.ranks))  # every process has some
        for place, shown in enumerate(split.parts(size)):
            if place % own.ranks != own.rank:
                continue
            logits = looked_at(nets, self._task, self._recipe, shown)
            for name, judge in judges.items():
                lost, right = judged(logits, judge[:, place * size : (place + 1) * size])
                losses[name].append(lost)
                correct[name].append(right)
        return {
            key: value
            for name in judges
            # All at once: more runs are measured on fewer images at a time.
            for key, value in summed(
                name, _joined(losses[name], nets), _joined(correct[name], nets), len(split), self._machinery
            ).items()
        }


def looked_at(nets: Nets, task: ImageTask, recipe: Recipe, shown: Pictures) -> Tensor:
    """What nets say of images, all of the same ones, without augmentation: (runs, images, classes)."""
    with autocast(recipe.precision, shown.images.device):
        return nets.look((task.evaluation_inputs(recipe, *shown),), shared=True).float()


def judged(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Negative log-likelihood of each label (runs, examples), and whether it was the likeliest."""
    each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return each.unflatten(0, labels.shape), logits.argmax(-1) == labels


def _joined(parts: Sequence[Tensor], nets: Nets) -> Tensor:
    """(runs, examples) side by side; a process may have none."""
    return torch.cat(list(parts) or [nets.parameters[0].new_zeros(nets.runs, 0)], dim=1)


def summed(name: str, losses: Tensor, correct: Tensor, count: int, machinery: Machinery) -> dict[str, Tensor]:
    """Means over all examples of a split, so many, of which these (runs, examples) are this process's part."""
    return {
        f"{name}_loss": machinery.added_up(run_sums(losses.double())) / count,
        f"{name}_accuracy": machinery.added_up(correct.sum(-1).double()) / count,
    }
