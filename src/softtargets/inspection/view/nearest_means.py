"""NC4 of a stream: how often a net does not say the class with the nearest mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from softtargets.geometry import nearest_mean_disagreement
from softtargets.inspection.shared.progress import Piece

BATCH = 1 << 24  # numbers that are compared at a time: few large products take less time than many small ones


class Disagreement:
    """`geometry.nearest_mean_disagreement` over some examples of a stream, at the places `sample`, in ascending order.

    >>> means = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> nc4 = Disagreement(torch.tensor([0, 2]), means, weights=means, bias=torch.tensor([0.0, 1.0]))
    >>> chunks = [(torch.tensor([[3.0, 0.1], [0.0, 9.0]]), None), (torch.tensor([[3.0, 2.9]]), None)]
    >>> len(list(nc4.watching(chunks))), nc4.share()
    (2, 0.5)
    """

    def __init__(self, sample: Tensor, means: Tensor, weights: Tensor, bias: Tensor | None) -> None:
        self._sample, self._layer = sample, (means, weights, bias)
        rows = max(1, min(len(sample), BATCH // weights.shape[1]))
        # Made once: small tensors kept between large ones that come and go would leave holes in memory.
        self._waiting = torch.empty(rows, weights.shape[1], dtype=torch.float64)
        self._held = 0
        self._apart, self._count = 0.0, 0

    def watching(self, chunks: Iterable[Piece]) -> Iterator[Piece]:
        """The same chunks; looks at their examples as they go by."""
        start = 0
        for activations, labels in chunks:
            stop = start + len(activations)
            first, last = torch.searchsorted(self._sample, torch.tensor([start, stop])).tolist()
            self._add(activations[self._sample[first:last] - start])
            start = stop
            yield activations, labels
        self._compare()

    def share(self) -> float:
        """The share of those that have gone by."""
        if not self._count:
            raise ValueError("no examples have gone by")
        return self._apart / self._count

    def _add(self, found: Tensor) -> None:
        while len(found):
            room = len(self._waiting) - self._held
            some, found = found[:room], found[room:]
            self._waiting[self._held : self._held + len(some)] = some
            self._held += len(some)
            if self._held == len(self._waiting):
                self._compare()

    def _compare(self) -> None:
        if self._held:
            found = self._waiting[: self._held]
            self._apart += nearest_mean_disagreement(found, *self._layer) * len(found)
            self._count += len(found)
            self._held = 0
