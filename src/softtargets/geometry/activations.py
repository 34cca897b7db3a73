"""Activations and their labels, read a chunk at a time: there may be millions of tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels
from softtargets.geometry.checking import as_tensor, check_finite, check_size

CHUNK = 1 << 22  # numbers at a time: 32 MiB in double precision


class LabelledActivations:
    """Activations (..., D) with labels (...), seen as (N, D) and (N,); padding has the label `ignore_index`.

    Arrays stay where and as they are; only chunks are copied, so that a file may be mapped (`numpy.memmap`).
    `rows` are the places of the examples that count, `labels` their classes, both on the CPU.

    >>> found = LabelledActivations(torch.zeros(2, 3, 5), torch.tensor([[4, 7, -100], [1, -100, -100]]), classes=8)
    >>> found.rows, found.labels
    (tensor([0, 1, 3]), tensor([4, 7, 1]))
    """

    def __init__(
        self,
        activations: ArrayLike,
        labels: ArrayLike,
        classes: int,
        size: int | None = None,
        ignore_index: int = -100,
    ) -> None:
        given = activations.detach() if isinstance(activations, Tensor) else np.asarray(activations)
        if given.ndim < 2 or given.shape[-1] == 0:
            raise ValueError(f"activations must be (examples, dimensions), not {tuple(given.shape)}")
        check_size(given.shape[-1], size)
        marked = as_tensor(labels).cpu()
        if tuple(marked.shape) != tuple(given.shape[:-1]):
            raise ValueError(
                f"there must be one label for each example: labels are {tuple(marked.shape)}, "
                f"activations {tuple(given.shape)}"
            )
        marked = marked.reshape(-1)
        counts = marked != ignore_index
        known = as_labels(marked.masked_fill(~counts, 0), len(marked), classes)
        self._activations: ArrayLike = given.reshape(-1, given.shape[-1])
        self.size = int(given.shape[-1])
        self.rows = counts.nonzero().flatten()
        self.labels = known[self.rows]

    def __len__(self) -> int:
        return len(self.rows)

    def chunks(
        self, places: Tensor | None = None, width: int | None = None, device: torch.device | None = None
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Activations (n, D) in double precision and their labels, chunk after chunk.

        `places` are some of 0 to len - 1, in any order. `width` is how many numbers an example costs, D by default.
        """
        for some in self._split(places, width):
            found = self._take(self.rows[some])
            labels = self.labels[some].to(device if device is not None else found.device)
            yield found.to(device=device, dtype=torch.float64), labels

    def check(self, places: Tensor | None = None) -> None:
        """Refuse activations that are not finite, before anything is computed; padding may be anything."""
        for some in self._split(places, None):
            check_finite(self._take(self.rows[some]), self.rows[some])

    def _split(self, places: Tensor | None, width: int | None) -> Iterator[Tensor]:
        chosen = torch.arange(len(self)) if places is None else places
        if len(chosen):
            yield from chosen.split(max(1, CHUNK // max(self.size, width or 0)))

    def _take(self, rows: Tensor) -> Tensor:
        if isinstance(self._activations, Tensor):
            return self._activations.index_select(0, rows.to(self._activations.device))
        return torch.from_numpy(self._activations[rows.numpy()])


def evenly(count: int, most: int | None) -> Tensor:
    """At most `most` of 0 to count - 1, all for None, evenly spaced: the same whenever and wherever one looks.

    >>> evenly(10, 3), evenly(2, 3)
    (tensor([1, 5, 8]), tensor([0, 1]))
    """
    if most is not None and most < 1:
        raise ValueError(f"need at least one example of each, not {most}")
    if most is None or most >= count:
        return torch.arange(count)
    return ((2 * torch.arange(most) + 1) * count) // (2 * most)
