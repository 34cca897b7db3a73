"""An array that lies in a file and is read some rows at a time."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from copy import copy

import torch
from torch import Tensor

from softtargets.predictions.errors import InFile

BLOCK_BYTES = 1 << 24  # about what is in memory at a time
LOAD_BYTES = 1 << 32  # the most that is loaded at once
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


class FileArray(InFile, ABC):
    """Numbers in a file: `name`, `shape` and `dtype` are known, the rest is read when asked for.

    `dtype` is the name of torch's, "text" for strings and "other" for what is neither; those two cannot be read.
    `seekable` arrays can be read from any row, the others only from the first on.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    seekable: bool = True
    contiguous: bool = False  # rows follow one another, so that another shape is all it takes to merge them
    inner: int = 1  # rows that were one row before dimensions were merged

    @abstractmethod
    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Consecutive rows from `start` on, `rows` at a time; the last block may have fewer."""

    def merged(self) -> FileArray:
        """The same numbers with all but the last dimension made into one."""
        if len(self.shape) < 3:
            return self
        if not self.contiguous:
            return Merged(self)
        found = copy(self)
        found.inner, found.shape = math.prod(self.shape[1:-1]), (math.prod(self.shape[:-1]), self.shape[-1])
        return found

    def place(self, row: int) -> str:
        """Where a row is, in words: rows of arrays count from 0."""
        outer, position = divmod(row, self.inner)
        return f"row {outer}" if self.inner == 1 else f"row {outer}, position {position}"

    def decimals(self) -> int | None:
        """To how many digits after the point numbers in a text file are rounded; None: they are not."""
        return None

    def load(self, most: int = LOAD_BYTES) -> Tensor:
        """The whole array; refused if it is larger than `most` bytes."""
        size = math.prod(self.shape) * (getattr(torch, self.dtype).itemsize if self.is_floating else 8)
        if size > most:
            raise self.refused(
                f"has an array {self.describe()} of {size / 2**30:.1f} GiB, too large to load at once",
                "read it in chunks",
            )
        found = list(self.blocks(max(1, self.shape[0])))
        return found[0] if found else torch.empty(self.shape)

    def describe(self) -> str:
        """Name, shape and type, as in messages: ``'logits' (10000, 10) float32``."""
        return f"'{self.name}' {self.shape} {self.dtype}"

    def refuse_unreadable(self) -> None:
        """Refuse what has no numbers."""
        if self.dtype in ("text", "other"):
            raise self.refused(f"has no numbers in the array {self.describe()}")

    @property
    def is_number(self) -> bool:
        """Whether scores could be in it."""
        return self.dtype in FLOATS or self.dtype in INTEGERS

    @property
    def is_floating(self) -> bool:
        """Whether it has floating-point numbers."""
        return self.dtype in FLOATS

    @property
    def row_bytes(self) -> int:
        """Memory that a row takes when it is read."""
        return max(1, 8 * math.prod(self.shape[1:]))


def rechunk(blocks: Iterable[Tensor], rows: int) -> Iterator[Tensor]:
    """The same rows in blocks of `rows`, the last one shorter.

    >>> [block.tolist() for block in rechunk([torch.arange(3), torch.arange(3, 5)], rows=2)]
    [[0, 1], [2, 3], [4]]
    """
    held: list[Tensor] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        if count >= rows:
            whole = torch.cat(held) if len(held) > 1 else held[0]
            end = count - count % rows
            yield from whole[:end].split(rows)
            held, count = ([whole[end:]], count - end) if count > end else ([], 0)
    if count:
        yield torch.cat(held)


class Merged(FileArray):
    """An array with its leading dimensions made into one, or all of them if `flat`: labels (sequences, positions).

    Whole outer rows are read, so that at least one of them is in memory.
    """

    def __init__(self, base: FileArray, flat: bool = False) -> None:
        self._base = base
        self.path, self.name, self.dtype, self.seekable = base.path, base.name, base.dtype, base.seekable
        leading, last = (base.shape, ()) if flat else (base.shape[:-1], base.shape[-1:])
        self.inner = math.prod(leading[1:])
        self.shape = (math.prod(leading), *last)

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """The same rows, counted otherwise."""
        first, rest = divmod(start, self.inner)
        parts = self._base.blocks(max(1, rows // self.inner), first)
        flat = (part.reshape(-1, *self.shape[1:]) for part in parts)
        return rechunk((part if number else part[rest:] for number, part in enumerate(flat)), rows)

    def place(self, row: int) -> str:
        """As the array says it, where only its shape is another."""
        return super().place(row) if self.inner > 1 else self._base.place(row)
