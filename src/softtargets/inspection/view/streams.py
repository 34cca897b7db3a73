"""What is taken from a stream of activations as it goes by: the rows of a few classes, and NC4."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.exceptions import StorageError
from softtargets.geometry import nearest_mean_disagreement
from softtargets.inspection.shared.reading import Piece

BATCH = 1 << 24  # numbers that are compared at a time: few large products take less time than many small ones
HELD = 1 << 28  # bytes of activations that are held in memory; more go into a temporary file


@dataclass(frozen=True)
class ClassRows:
    """Activations (n, D) and labels (n,) of the classes wanted, and their places in the stream."""

    activations: ArrayLike
    labels: Tensor
    places: Tensor


@contextmanager
def gather(
    chunks: Iterable[Piece], classes: Sequence[int], count: int, held: int = HELD
) -> Iterator[ClassRows]:
    """Read a stream of activations and labels once, and keep the examples of some classes, of which there are `count`.

    Three frequent words of a corpus can be more than fits into memory: beyond `held` bytes they lie in a temporary
    file, which is mapped, and gone with the context.

    >>> stream = [(torch.eye(3), torch.tensor([0, 2, 1])), (torch.ones(1, 3), torch.tensor([2]))]
    >>> with gather(stream, classes=[2], count=2) as rows:
    ...     rows.places, rows.activations.tolist()
    (tensor([1, 3]), [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    """
    wanted = torch.tensor(list(classes))
    # Made once: small tensors kept between large ones that come and go would leave holes in memory.
    labels, places = torch.empty(count, dtype=torch.int64), torch.empty(count, dtype=torch.int64)
    kept: NDArray[Any] | None = None
    part = np.empty((0, 0))
    start = at = 0
    with tempfile.TemporaryFile() as file:
        for activations, classes_of in chunks:
            chosen = torch.isin(classes_of, wanted).nonzero().flatten()
            part, here = _plain(activations[chosen]), slice(at, at + len(chosen))
            if kept is None and count * part.itemsize * part.shape[1] <= held:
                kept = np.empty((count, part.shape[1]), part.dtype)
            if kept is None:
                _write(file, part)
            else:
                kept[here] = part
            labels[here], places[here] = classes_of[chosen], chosen + start
            start, at = start + len(activations), at + len(chosen)
        if at != count or start == 0:
            raise ValueError(f"there are {at} examples of these classes, not {count}; has the file changed?")
        if kept is None:
            kept = np.memmap(file, dtype=part.dtype, mode="r").reshape(-1, part.shape[1])
        yield ClassRows(kept, labels, places)


def _write(file: IO[bytes], part: NDArray[Any]) -> None:
    try:
        file.write(part.tobytes())
        file.flush()
    except OSError as problem:
        raise StorageError(
            f"cannot keep the activations of three classes in {tempfile.gettempdir()} ({problem.strerror}); "
            "set TMPDIR to a directory with more room"
        ) from None


def _plain(values: Tensor) -> NDArray[Any]:
    """As numpy has it: half precision becomes single."""
    return (values if values.dtype == torch.float64 else values.float()).numpy()


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
            raise ValueError("there are no examples")
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
