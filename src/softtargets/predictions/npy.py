"""Numpy's file format: a header that is read as a literal, never executed, and plain bytes.

Format: numpy, NEP 1 and `numpy.lib.format`. Objects would be pickles and are refused by the header alone.
"""

from __future__ import annotations

import ast
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from softtargets.predictions.array import FileArray
from softtargets.predictions.failing import PredictionFileError, reading
from softtargets.predictions.raw import RawArray, row_major

MAGIC = b"\x93NUMPY"
HEADER_BYTES = 1 << 16


class Header:
    """What a .npy file says about itself."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[np.generic], fortran: bool, length: int
    ) -> None:
        self.shape, self.dtype, self.fortran, self.length = shape, dtype, fortran, length

    @property
    def content(self) -> int:
        """Bytes that must follow the header."""
        # Of Python's integers: numpy's would overflow for a header that lies.
        count = self.dtype.itemsize
        for size in self.shape:
            count *= size
        return count


def read_header(file: BinaryIO, path: Path, name: str) -> Header:
    """Read the header at the position of a file; `name` is the array's, for messages."""

    def damaged(what: str) -> PredictionFileError:
        return PredictionFileError(path, f"is damaged: {what} of '{name}'", "save it again")

    start = file.read(8)
    if len(start) < 8 or start[:6] != MAGIC:
        raise damaged("no numpy header at the beginning")
    form = {1: "<H", 2: "<I", 3: "<I"}.get(start[6])
    if form is None:
        raise damaged(f"an unknown version {start[6]} of the header")
    packed = file.read(struct.calcsize(form))
    if len(packed) < struct.calcsize(form):
        raise damaged("an incomplete header")
    (length,) = struct.unpack(form, packed)
    if length > HEADER_BYTES:
        raise damaged(f"a header of {length} bytes")
    text = file.read(length)
    if len(text) < length:
        raise damaged("an incomplete header")
    try:
        found = ast.literal_eval(text.decode("utf-8" if start[6] == 3 else "latin1").strip())
        shape, fortran, dtype = found["shape"], found["fortran_order"], _dtype(found["descr"])
        if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError
    except (ValueError, TypeError, KeyError, SyntaxError, RecursionError, MemoryError):
        raise damaged("an unreadable header") from None
    if dtype.hasobject:
        raise PredictionFileError(
            path,
            f"is refused: '{name}' holds Python objects, which are a program to be executed, not numbers",
            "save it with a numeric dtype",
        )
    return Header(shape, dtype, bool(fortran), 8 + len(packed) + length)


def _dtype(described: Any) -> np.dtype[np.generic]:
    found: np.dtype[np.generic] = np.lib.format.descr_to_dtype(described)
    return found


def arrays_at(path: Path, name: str, header: Header, offset: int, available: int) -> dict[str, FileArray]:
    """The array whose bytes begin at `offset`, of which there are `available`; one per field if it is structured."""
    if header.content != available:
        raise PredictionFileError(
            path,
            f"is damaged: '{name}' {header.shape} should take {header.content} bytes, but there are {available}",
            "it was cut off or altered; save it again",
        )
    shape, size = header.shape, header.dtype.itemsize
    strides: tuple[int, ...] | None = None
    if header.fortran and len(shape) > 1:
        steps = [size]
        for count in shape[:-1]:
            steps.append(steps[-1] * count)
        strides = tuple(steps)
    if header.dtype.names is None:
        return {name: RawArray(path, name, shape, header.dtype, offset, strides)}
    if len(shape) != 1:
        raise PredictionFileError(
            path, f"has records in the array '{name}' {shape}", "save records (examples,) or a plain array"
        )
    found: dict[str, FileArray] = {}
    assert header.dtype.fields is not None
    for field in header.dtype.names:
        kind, place = header.dtype.fields[field][:2]
        plain, inner = (kind.base, kind.shape)
        stepping = (size, *row_major(inner, plain.itemsize))
        found[field] = RawArray(path, field, (*shape, *inner), plain, offset + place, stepping)
    return found


def open_npy(path: Path, size: int) -> dict[str, FileArray]:
    """The array of a .npy file, by the name ``array``, or the fields of its records."""
    with reading(path), open(path, "rb") as file:
        header = read_header(file, path, "array")
    return arrays_at(path, "array", header, header.length, size - header.length)
