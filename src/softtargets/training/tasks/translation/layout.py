"""Which batch of an epoch holds what, and in which order batches come: drawn anew for each epoch by its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from softtargets.randomness import permutation, ranks, stacked_keys
from softtargets.training.tasks.task import Epoch
from softtargets.training.tasks.translation.buckets import Bucket


class Shape(NamedTuple):
    """A step: of which bucket, how many sentences, and how many tokens they are filled up to."""

    bucket: int
    rows: int
    source: int
    target: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The batches of one training: every sentence once in an epoch, in batches of about so many tokens.

    The sentences of a bucket are drawn into its batches, the last one filled up with empty ones; then all batches are
    drawn into an order. Both depend on nothing but the seed and the epoch.
    """

    buckets: Sequence[Bucket]
    lengths: NDArray[np.int64]  # of all targets
    tokens: int

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Of a batch of each bucket."""
        return tuple(
            Shape(number, bucket.rows(self.tokens), bucket.source, bucket.target)
            for number, bucket in enumerate(self.buckets)
        )

    @cached_property
    def batches(self) -> tuple[tuple[int, int], ...]:
        """The bucket of each batch and where it begins in the table, before they are put into an order."""
        found, begin = [], 0
        for bucket, shape in zip(self.buckets, self.shapes, strict=True):
            for _ in range(-(-len(bucket) // shape.rows)):
                found.append((shape.bucket, begin))
                begin += shape.rows
        return tuple(found)

    @cached_property
    def size(self) -> int:
        """Rows of the table."""
        bucket, begin = self.batches[-1]
        return begin + self.shapes[bucket].rows

    @cached_property
    def padding(self) -> float:
        """The share of target positions of an epoch that hold no token, those of empty sentences included."""
        room = sum(self.shapes[bucket].rows * self.shapes[bucket].target for bucket, _ in self.batches)
        return 1 - int(self.lengths.sum()) / room

    def keys(self, seeds: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
        """What the orders of sentences and of batches are drawn by."""
        return stacked_keys(seeds, "order", device), stacked_keys(seeds, "order of batches", device)

    def table(self, keys: Tensor, epochs: Tensor) -> Tensor:
        """Which sentence of its bucket each row holds, (runs, size); one past the last is the empty one."""
        # As a permutation of each bucket, but drawn in one go: a GPU would be given eight times as many small things.
        numbers, buckets = self._places(keys.device)
        drawn = ranks(keys, numbers, epochs[..., None], buckets)
        parts = []
        for part, shape in zip(
            drawn.split([len(each) for each in self.buckets], -1), self.shapes, strict=True
        ):
            count = part.shape[-1]
            order = torch.argsort(part, dim=-1, stable=True)
            parts.append(F.pad(order, (0, -count % shape.rows), value=count))
        return torch.cat(parts, 1)

    def order(self, keys: Tensor, epochs: Tensor) -> Tensor:
        """Which batch comes at each place, (runs, batches)."""
        return permutation(keys, len(self.batches), epochs)

    def epoch(self, seed: int, number: int) -> Epoch:
        """The steps of an epoch, by the same draws as on the device."""
        return self._remembered(seed, number)

    @cached_property
    def _remembered(self) -> Callable[[int, int], Epoch]:
        # A training asks for the same one more than once. What is remembered goes when the layout goes.
        return lru_cache(maxsize=128)(self.draw)

    def draw(self, seed: int, number: int) -> Epoch:
        """The same, drawn again."""
        of_rows, of_batches = self.keys([seed], torch.device("cpu"))
        epochs = torch.tensor([number])
        table, order = self.table(of_rows, epochs)[0].numpy(), self.order(of_batches, epochs)[0].tolist()
        held = np.zeros(self.size, np.int64)
        begin = 0
        for bucket, shape in zip(self.buckets, self.shapes, strict=True):
            end = begin + -(-len(bucket) // shape.rows) * shape.rows
            held[begin:end] = np.append(self.lengths[bucket.members], 0)[table[begin:end]]
            begin = end
        ends = np.append([start for _, start in self.batches], self.size)
        units = np.add.reduceat(held, ends[:-1])
        return Epoch(
            tuple(self.shapes[self.batches[batch][0]] for batch in order),
            tuple(int(units[batch]) for batch in order),
        )

    @cached_property
    def _places(self) -> Callable[[torch.device], tuple[Tensor, Tensor]]:
        """The number of each sentence in its bucket, and that of the bucket."""
        counts = [len(bucket) for bucket in self.buckets]
        numbers = torch.cat([torch.arange(count) for count in counts])
        buckets = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        return lru_cache(maxsize=1)(lambda device: (numbers.to(device), buckets.to(device)))
