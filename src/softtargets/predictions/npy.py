"""Numpy's file format: a header, which numpy reads as a literal and never executes, and plain bytes.

Only the header is numpy's to read: the bytes are read some rows at a time (`raw`), also within an archive, where
numpy would unpack the whole array. Objects would be pickles and are refused by the header alone.
"""

from __future__ import annotations

import math
import tokenize
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as numpy_format

from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import FoundFile, reading
from softtargets.predictions.raw import RawArray, row_major

MAGIC = numpy_format.MAGIC_PREFIX
HEADER_BYTES = 1 << 16  # a field for each of 1000 classes takes 20 KB


class Header(NamedTuple):
    """What a .npy file says about itself; `length` is that of the header."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran: bool
    length: int

    @property
    def content(self) -> int:
        """Bytes that must follow the header; of Python's integers, which cannot overflow."""
        return self.dtype.itemsize * math.prod(self.shape)


def read_header(stream: BinaryIO, file: FoundFile, name: str) -> Header:
    """Read the header at the beginning of a file; `name` is the array's, for messages."""
    try:
        version = numpy_format.read_magic(stream)
        # Version 3 differs from 2 in how names of fields are encoded.
        read = {1: numpy_format.read_array_header_1_0}.get(version[0], numpy_format.read_array_header_2_0)
        shape, fortran, dtype = read(stream, max_header_size=HEADER_BYTES)
        if version[0] > 3 or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError
        if version[0] == 3 and dtype.names:
            dtype.names = tuple(field.encode("latin1").decode("utf-8") for field in dtype.names)
    except (ValueError, TypeError, SyntaxError, tokenize.TokenError, RecursionError, MemoryError):
        raise file.refused(
            f"is damaged: an unreadable or incomplete numpy header of '{name}'", "save it again"
        ) from None
    if dtype.hasobject:
        raise file.refused(
            f"is refused: '{name}' has Python objects, which would be executed, not numbers",
            "save it with a numeric dtype",
        )
    return Header(shape, dtype, fortran, stream.tell())


def arrays_at(
    file: FoundFile, name: str, header: Header, offset: int, available: int
) -> dict[str, FileArray]:
    """The array whose bytes begin at `offset`, of which there are `available`; one per field if it is structured."""
    if header.content != available:
        raise file.refused(
            f"is damaged: '{name}' {header.shape} should take {header.content} bytes, but there are {available}",
            "it was cut off or altered; save it again",
        )
    shape, size = header.shape, header.dtype.itemsize
    if header.dtype.fields is None:
        turned = row_major(shape[::-1], size)[::-1] if header.fortran else None
        return {name: RawArray(file.path, name, shape, header.dtype, offset, turned)}
    if len(shape) != 1:
        raise file.refused(
            f"has records in the array '{name}' {shape}", "save records (examples,) or a plain array"
        )
    found: dict[str, FileArray] = {}
    for field, (kind, place, *_) in header.dtype.fields.items():
        strides = (size, *row_major(kind.shape, kind.base.itemsize))
        found[field] = RawArray(file.path, field, (*shape, *kind.shape), kind.base, offset + place, strides)
    return found


def open_npy(file: FoundFile) -> dict[str, FileArray]:
    """The array of a .npy file, by the name ``array``, or the fields of its records."""
    with reading(file.path), open(file.path, "rb") as stream:
        header = read_header(stream, file, "array")
    return arrays_at(file, "array", header, header.length, file.size - header.length)
