"""Activations, templates and classes as this room needs them, or one sentence about what is wrong with them.

Activations are read a chunk at a time: there may be millions of tokens.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_floating, as_labels, as_tensor

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
        given = (
            as_tensor(activations).detach() if isinstance(activations, Tensor) else np.asarray(activations)
        )
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
        chosen = torch.arange(len(self), device="cpu") if places is None else places
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
        return torch.arange(count, device="cpu")
    return ((2 * torch.arange(most, device="cpu") + 1) * count) // (2 * most)


def as_templates(values: ArrayLike, name: str = "weights", least: int = 1) -> Tensor:
    """Finite numbers (K, D), one row per class, at least `least` dimensions; in their precision, without gradient.

    >>> as_templates(torch.tensor([[0.0, 1.0], [float("inf"), 2.0]]))
    Traceback (most recent call last):
    ValueError: weights contain NaN or infinite values: inf for class 1
    """
    found = as_real(values, name)
    if found.ndim != 2 or found.shape[0] == 0 or found.shape[1] < least:
        raise ValueError(f"need {name} (K, D) with D of at least {least}, not {tuple(found.shape)}")
    if place := _not_finite(found):
        raise ValueError(f"{name} contain NaN or infinite values: {float(found[place])} for class {place[0]}")
    return found


def as_activations(values: ArrayLike, size: int | None = None) -> Tensor:
    """Finite numbers (N, D), one row per example; with D of the weights where that is known.

    >>> as_activations(torch.zeros(4, 3), size=2)
    Traceback (most recent call last):
    ValueError: activations have 3 dimensions, but the last layer takes 2; pass what goes into the last layer
    """
    found = as_real(values, "activations")
    if found.ndim != 2 or found.shape[1] == 0:
        raise ValueError(f"activations must be (examples, dimensions), not {tuple(found.shape)}")
    check_size(found.shape[1], size)
    check_finite(found)
    return found


def as_real(values: ArrayLike, name: str) -> Tensor:
    """A floating-point tensor of any shape, without gradient; whole numbers become double precision.

    >>> as_real(torch.tensor([True]), "weights")
    Traceback (most recent call last):
    ValueError: weights must be real numbers, not torch.bool
    """
    return as_floating(values, name).detach()


def check_size(given: int, size: int | None) -> None:
    """Refuse activations that are not as wide as the last layer."""
    if size is not None and given != size:
        raise ValueError(
            f"activations have {given} dimensions, but the last layer takes {size}; pass what goes into the last layer"
        )


def check_finite(found: Tensor, rows: Tensor | None = None) -> None:
    """Refuse activations (N, D) that are not all finite; `rows` says which examples they are, if not 0 to N - 1."""
    if place := _not_finite(found):
        row, column = place
        example = row if rows is None else int(rows[row])
        raise ValueError(
            f"activations of example {example} are not all finite: {float(found[place])} in dimension {column}"
        )


def _not_finite(found: Tensor) -> tuple[int, int] | None:
    """The first place (row, column) that holds no number."""
    finite = torch.isfinite(found)
    if bool(finite.all()):
        return None
    row, column = (~finite).nonzero()[0].tolist()
    return row, column


def three_classes(classes: Sequence[int], count: int) -> list[int]:
    """Three different classes of `count`.

    >>> three_classes([0, 4, 4], 10)
    Traceback (most recent call last):
    ValueError: need three different classes from 0 to 9, not [0, 4, 4]
    """
    chosen = [operator.index(c) for c in classes]
    if len(chosen) != 3 or len(set(chosen)) != 3 or not all(0 <= c < count for c in chosen):
        raise ValueError(f"need three different classes from 0 to {count - 1}, not {chosen}")
    return chosen
