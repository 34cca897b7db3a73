"""The images of a pack that stay in their files: brought batch by batch, augmented on the device.

Orders are drawn on the host, which must know what to have decoded, and views on the device, each for the batch of the
moment; by the same keys and places as those of images on the device, so that a run has the same numbers either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from softtargets.calibration import one_thread
from softtargets.data.augment import ResizedCrop, View
from softtargets.randomness import permutation, stacked_keys
from softtargets.recipes import CSKD, Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets
from softtargets.training.tasks.images.feed import IGNORED, ShownImages, Views, judged, looked_at, summed
from softtargets.training.tasks.images.partners import Partners
from softtargets.training.tasks.images.streaming import Ahead, Room, Streamed, Waiting, Wanted, put_into
from softtargets.training.tasks.images.task import ImageTask
from softtargets.training.tasks.task import Feed

Place = tuple[tuple[int, ...], int]  # the epoch of each run, and the step of all in it
Piece = tuple[str, int]  # a split, and how many of its images are looked at


def cut_by_decoders(recipes: Sequence[Recipe], view: View, device: torch.device) -> int | None:
    """How large the parts are that decoders cut out, where a CPU would have to; None where it is done on the device.

    The parts are the same. Losses that look at images in another way, too, need all of them.
    """
    if device.type != "cpu" or not view.kinds or not isinstance(view.kinds[0], ResizedCrop):
        return None
    alone = all(recipe.teacher is None and not isinstance(recipe.regulariser, CSKD) for recipe in recipes)
    return view.shapes[1][1] if alone else None


class StreamedFeed(Feed):
    """Has images decoded in the order of each run's seed, a few batches ahead, also beyond the end of an epoch."""

    def __init__(self, recipes: Sequence[Recipe], tasks: Sequence[ImageTask], machinery: Machinery) -> None:
        self._recipe, self._task = recipes[0], tasks[0]  # for what all have in common
        train, device = self._task.splits["train"], machinery.device
        assert isinstance(train.images, Streamed)
        self._files = train.images
        self._labels = torch.stack([each.splits["train"].labels for each in tasks])
        shapes: Any = self._task.epoch(self._recipe, 0).shapes
        self._shapes: tuple[int, ...] = shapes
        self._last = max(one.steps or (one.epochs or 0) * len(self._shapes) for one in recipes)
        self._machinery, self._share = machinery, machinery.share
        view, standardise = self._task.view(self._recipe), self._task.standardise
        self._cut = cut_by_decoders(recipes, view, device)
        first = 0 if self._cut is None else 1

        rows = max(map(len, map(self._mine, self._shapes)))
        shape = rows * len(recipes), *view.output_shape
        ready = torch.zeros(shape) if device.type == "cpu" else None  # always at the same addresses

        def inputs(
            images: Tensor, views: Views
        ) -> tuple[Tensor, Tensor]:  # of no feed: compiled, it outlives this one
            shown = view.apply(images, views, first)
            return shown, standardise(shown) if ready is None else put_into(ready, shown, standardise)

        self._view, self._plain = view, inputs
        self._brought = replace(self._files, how=replace(self._files.how, cut=self._cut))
        self._compiled = machinery.compiled(inputs)
        seeds = [recipe.seed for recipe in recipes]
        self._order_keys = stacked_keys(seeds, "order")
        self._view_keys = stacked_keys(seeds, "augmentation", device)
        self._orders: dict[tuple[int, ...], Tensor] = {}
        self._partners: Partners | None = None
        if isinstance(self._recipe.regulariser, CSKD):
            self._partners = Partners(seeds[0], self._labels[0].cpu(), len(self._task.classes))
        # What a step reads, always at the same addresses.
        self._room = Room(self._brought, rows * len(seeds) * (2 if self._partners else 1))
        self._chosen = torch.zeros(len(seeds), rows, dtype=torch.int64, device=device)
        self._epochs = torch.zeros(len(seeds), dtype=torch.int64, device=device)
        self._waiting = Waiting(device)
        self._coming: Ahead | None = None
        self._known: deque[tuple[Place, Tensor]] = deque()
        self._prepare_to_look(recipes, tasks, device)

    # --- training ---

    def open(self, epochs: Tensor) -> None:
        """Which epoch it is; all else is drawn batch by batch."""
        self._epochs.copy_(epochs)

    def _on_few_cores(self) -> AbstractContextManager[object]:
        """On a CPU, where decoders have done the work, one thread does the rest.

        It is little, and several threads that wait for each other take the cores from those who decode: with two cores,
        a third fewer images came.
        """
        return nullcontext() if self._cut is None else one_thread()

    def bring(self, epochs: Sequence[int], place: int) -> None:
        """Put the images of this step where it reads them."""
        with self._on_few_cores():
            self._bring(epochs, place)

    def _bring(self, epochs: Sequence[int], place: int) -> None:
        now = tuple(epochs), place
        if self._coming is None or not self._known or self._known[0][0] != now:
            # The first step, or the first one after others joined or left.
            self.close()
            self._coming = Ahead(self._brought, self._wanted(now), self._room, waiting=self._waiting)
        self._coming.bring()
        _, chosen = self._known.popleft()
        own = chosen.pin_memory() if self._chosen.is_cuda else chosen
        self._chosen[:, : chosen.shape[1]].copy_(own, non_blocking=True)

    def close(self) -> None:
        """Forget what is on its way."""
        if self._coming is not None:
            self._coming.close()
        self._coming = None
        self._known.clear()

    def batch(self, place: Tensor, shape: int) -> ShownImages:
        """So many images, or as many of them as are this process's share."""
        rows, runs = len(self._mine(shape)), len(self._chosen)
        chosen = self._chosen[:, :rows]
        brought = self._room.pictures(rows * runs * (2 if self._partners else 1), self._brought.how)
        stored = brought.part(slice(rows * runs))
        sizes = None if stored.sizes is None or self._cut else stored.sizes.unflatten(0, chosen.shape)
        drawn = self._view.draw(self._view_keys, chosen, self._epochs, sizes)
        views = [{name: values.flatten() for name, values in kind.items()} for kind in drawn]
        make = self._compiled if shape == self._recipe.batch else self._plain
        with self._on_few_cores():
            images, inputs = (each.unflatten(0, chosen.shape) for each in make(stored.images, views))
        partners = None
        if self._partners:
            partners = brought.part(slice(rows * runs, None))
        labels = self._labels.gather(1, chosen)
        if self._idle(shape):
            labels = torch.full_like(labels, IGNORED)
        return ShownImages((inputs,), labels, images, chosen, None if self._cut else stored, partners)

    def _idle(self, shape: int) -> bool:
        own = self._share.rows(shape)
        return bool(own.start == own.stop)

    def _mine(self, shape: int) -> range:
        """Which images of a step are this process's; with more processes than images, one that does not count."""
        return range(1) if self._idle(shape) else range(*self._share.rows(shape).indices(shape))

    def _wanted(self, place: Place) -> Iterator[Wanted]:
        """The images of one step after another, up to the last one of all."""
        epochs, step = place
        while min(epochs) * len(self._shapes) + step < self._last:
            begin = step * self._recipe.batch
            own = self._mine(self._shapes[step])
            chosen = self._order(epochs)[:, begin + own.start : begin + own.stop]
            self._known.append(((epochs, step), chosen))
            wanted = chosen.flatten()
            if self._partners is not None:
                wanted = torch.cat((wanted, self._partners.of(wanted, torch.tensor(epochs))))
            tries = self._view.tries(self._view_keys, chosen, torch.tensor(epochs)) if self._cut else None
            yield Wanted(wanted.tolist(), tries)
            step += 1
            if step == len(self._shapes):
                epochs, step = tuple(epoch + 1 for epoch in epochs), 0

    def _order(self, epochs: tuple[int, ...]) -> Tensor:
        """The orders of all runs in these epochs; those of the present and the next one are kept."""
        if epochs not in self._orders:
            if len(self._orders) == 2:
                del self._orders[next(iter(self._orders))]
            self._orders[epochs] = permutation(self._order_keys, len(self._files), torch.tensor(epochs))
        return self._orders[epochs]

    # --- measuring ---

    def _prepare_to_look(
        self, recipes: Sequence[Recipe], tasks: Sequence[ImageTask], device: torch.device
    ) -> None:
        runs = len(recipes)
        self._held_out = {name: split for name, split in self._task.splits.items() if name != "train"}
        noisy = any(recipe.noise.on_held_out for recipe in recipes)
        self._judges: dict[str, dict[str, Tensor]] = {}
        for name, split in self._held_out.items():
            if noisy:
                own = torch.stack([each.splits[name].labels for each in tasks])
                clean = split.clean_labels.expand(runs, -1)
                self._judges[name] = {name: own, f"{name}_clean": clean}
            else:
                self._judges[name] = {name: split.labels.expand(runs, -1)}
        longest = max(len(split) for split in self._held_out.values())
        at_a_time = self._task.measured_at_a_time(runs, device.type == "cuda")
        self._at_a_time = min(at_a_time, -(-longest // self._share.ranks))  # every process has some
        self._looked_at = Room(self._files, min(self._at_a_time, longest))
        self._begin = torch.zeros(1, dtype=torch.int64, device=device)
        self._within = torch.arange(len(self._looked_at.pixels), device=device)
        every = [(judge, labels) for judges in self._judges.values() for judge, labels in judges.items()]
        self._losses = {judge: torch.zeros(labels.shape, device=device) for judge, labels in every}
        self._correct = {
            judge: torch.zeros(labels.shape, dtype=torch.bool, device=device) for judge, labels in every
        }

    def pieces(self) -> Iterator[Piece]:
        """Bring this process's share of the other splits, some images at a time."""
        rank, ranks = self._share.rank, self._share.ranks
        for name, split in self._held_out.items():
            assert isinstance(split.images, Streamed)
            coming = Ahead(
                split.images,
                list(split.images.parts(self._at_a_time))[rank::ranks],
                self._looked_at,
                ahead=1,
                waiting=self._waiting,
            )
            begin = rank * self._at_a_time
            try:
                while (rows := coming.bring()) is not None:
                    self._begin.fill_(begin)
                    yield name, rows
                    begin += ranks * self._at_a_time
            finally:
                coming.close()

    @torch.no_grad()
    def look(self, nets: Nets, piece: Piece) -> None:
        """Note what nets make of the images that were brought."""
        name, rows = piece
        shown = self._looked_at.pictures(rows, self._files.how)
        logits = looked_at(nets, self._task, self._recipe, shown)
        where = self._begin + self._within[:rows]
        for judge, labels in self._judges[name].items():
            lost, right = judged(logits, labels.index_select(1, where))
            self._losses[judge].index_copy_(1, where, lost)
            self._correct[judge].index_copy_(1, where, right)

    def score(self, nets: Nets) -> dict[str, Tensor]:
        """What was noted, of all images of each split; by this process, of those that are not its share nothing."""
        found: dict[str, Tensor] = {}
        for judge, losses in self._losses.items():
            found |= summed(judge, losses, self._correct[judge], losses.shape[1], self._machinery)
        return found

    def waited(self) -> float:
        """Seconds since this was asked last in which the device had nothing to look at."""
        return self._waiting.taken()
