"""Arrays that lie in a file as plain bytes: .npy, stored .npz, .safetensors and .pt have them all the same way.

They are read with plain reads, not mapped into memory: what a process holds is one block, also as the system counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, FLOATS, INTEGERS, FileArray
from softtargets.predictions.errors import reading


class RawArray(FileArray):
    """`shape` numbers of a numpy type from byte `offset` on; `strides` are in bytes, by default those of C order.

    numpy has no bfloat16: it is read as uint16 with `bfloat16=True`.
    """

    def __init__(
        self,
        path: Path,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        offset: int,
        strides: tuple[int, ...] | None = None,
        bfloat16: bool = False,
    ) -> None:
        self.path, self.name, self.shape = path, name, shape
        self.dtype = "bfloat16" if bfloat16 else type_name(dtype)
        self._numpy, self._offset = dtype, offset
        self.contiguous = strides in (None, row_major(shape, dtype.itemsize))
        self._odd_strides = None if self.contiguous else strides

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Rows as they lie in the file."""
        self.refuse_unreadable()
        if 0 in self.shape:
            return
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            for first in range(start, self.shape[0], rows):
                yield as_tensor(self._read(file, first, min(first + rows, self.shape[0])), self.dtype)

    @property
    def _strides(self) -> tuple[int, ...]:
        return self._odd_strides or row_major(self.shape, self._numpy.itemsize)

    def _read(self, file: BinaryIO, start: int, stop: int) -> NDArray[np.generic]:
        shape = (stop - start, *self.shape[1:])
        extent = self._extent(self.shape[1:], self._strides[1:])
        if self._strides[0] >= extent or len(shape) == 1:
            first = self._offset + start * self._strides[0]
            content = self._bytes(file, first, (stop - start - 1) * self._strides[0] + extent)
            found: NDArray[np.generic] = np.ndarray(shape, self._numpy, content, strides=self._strides)
            return found
        if len(shape) == 2 and self._strides[0] >= self._numpy.itemsize:
            # Column after column: the rows of a block are a piece of each.
            columns: NDArray[np.generic] = np.empty(shape[::-1], self._numpy)
            for number in range(shape[1]):
                first = self._offset + number * self._strides[1] + start * self._strides[0]
                piece = self._bytes(file, first, (stop - start - 1) * self._strides[0] + self._numpy.itemsize)
                columns[number] = np.ndarray(shape[:1], self._numpy, piece, strides=self._strides[:1])
            rows: NDArray[np.generic] = columns.T
            return rows
        return self._whole(file)[start:stop]

    def _whole(self, file: BinaryIO) -> NDArray[np.generic]:
        extent = self._extent(self.shape, self._strides)
        if max(extent, math.prod(self.shape) * self._numpy.itemsize) > 16 * BLOCK_BYTES:
            raise self.refused(
                f"has the array {self.describe()} stored in an order that cannot be read row by row",
                "save numpy.ascontiguousarray(...) of it, or .contiguous() in torch",
            )
        content = self._bytes(file, self._offset, extent)
        found: NDArray[np.generic] = np.ndarray(self.shape, self._numpy, content, strides=self._strides)
        return found

    def _extent(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
        return self._numpy.itemsize + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))

    def _bytes(self, file: BinaryIO, first: int, count: int) -> bytearray:
        content = bytearray(count)
        view = memoryview(content)
        file.seek(first)
        while view:
            got = file.readinto(view)  # type: ignore[attr-defined]
            if not got:
                raise self.refused(f"ends within the array '{self.name}'", "it is damaged; save it again")
            view = view[got:]
        return content


def row_major(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides in bytes of an array in C order."""
    return tuple(size * math.prod(shape[place + 1 :]) for place in range(len(shape)))


def type_name(dtype: np.dtype[np.generic]) -> str:
    """What torch calls a type of numpy; "text" and "other" for what has no numbers."""
    if dtype.kind in "US":
        return "text"
    if dtype.kind == "f" and dtype.itemsize > 8:
        return "float64"
    found = dtype.newbyteorder("=").name
    return found if found in FLOATS or found in INTEGERS or found == "bool" else "other"


def as_tensor(values: NDArray[np.generic], dtype: str) -> Tensor:
    """A tensor of the same numbers; memory of their own, in the order of this machine."""
    if dtype == "bfloat16":
        plain = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        return torch.from_numpy(plain.view(np.int16)).view(torch.bfloat16)
    # torch computes little with unsigned numbers of more than a byte.
    wide = {"uint16": np.int32, "uint32": np.int64, "uint64": np.float64}.get(dtype, np.dtype(dtype))
    found = np.ascontiguousarray(values, wide)
    flags = found.flags
    # A block of one row may keep odd strides, those of records for instance, which torch does not take.
    fine = flags.writeable and flags.aligned and found.strides == row_major(found.shape, found.itemsize)
    return torch.from_numpy(found if fine else found.copy())
