"""The rows of a few classes out of a stream, without holding the stream."""

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

HELD = 1 << 28  # bytes of activations that are held in memory; more go into a temporary file


@dataclass(frozen=True)
class Rows:
    """Activations (n, D) and labels (n,) of the classes wanted, and their places in the stream."""

    activations: ArrayLike
    labels: Tensor
    places: Tensor


@contextmanager
def gather(
    chunks: Iterable[tuple[Tensor, Tensor]], classes: Sequence[int], count: int, held: int = HELD
) -> Iterator[Rows]:
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
    start = at = 0
    with tempfile.TemporaryFile() as file:
        kept: _InMemory | _InFile | None = None
        for activations, classes_of in chunks:
            chosen = torch.isin(classes_of, wanted).nonzero().flatten()
            part = _plain(activations[chosen])
            if kept is None:
                small = count * part.itemsize * part.shape[1] <= held
                kept = _InMemory(count, part) if small else _InFile(file)
            kept.add(part)
            labels[at : at + len(chosen)] = classes_of[chosen]
            places[at : at + len(chosen)] = chosen + start
            start, at = start + len(activations), at + len(chosen)
        if kept is None or at != count:
            raise ValueError(f"there are {at} examples of these classes, not {count}; has the file changed?")
        yield Rows(kept.array(), labels, places)


class _InMemory:
    def __init__(self, count: int, like: NDArray[Any]) -> None:
        self._rows = np.empty((count, like.shape[1]), like.dtype)
        self._at = 0

    def add(self, part: NDArray[Any]) -> None:
        self._rows[self._at : self._at + len(part)] = part
        self._at += len(part)

    def array(self) -> NDArray[Any]:
        return self._rows


class _InFile:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def add(self, part: NDArray[Any]) -> None:
        self._width, self._dtype = part.shape[1], part.dtype
        try:
            self._file.write(part.tobytes())
            self._file.flush()
        except OSError as problem:
            raise StorageError(
                f"cannot keep the activations of three classes in {tempfile.gettempdir()} ({problem.strerror}); "
                "set TMPDIR to a directory with more room"
            ) from None

    def array(self) -> NDArray[Any]:
        return np.memmap(self._file, dtype=self._dtype, mode="r").reshape(-1, self._width)


def _plain(values: Tensor) -> NDArray[Any]:
    """As numpy has it: half precision becomes single."""
    return (values if values.dtype == torch.float64 else values.float()).numpy()
