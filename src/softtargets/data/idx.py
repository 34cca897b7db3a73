"""The IDX format of MNIST and its descendants, plain or gzipped.

Two zero bytes, a type code, the number of dimensions, each dimension as a big-endian 32-bit number, then
the values, big-endian, last dimension fastest. The length follows from the header, so a file that is a
byte too short or too long is refused.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data.files import BLOCK, LARGEST, reading
from softtargets.exceptions import DataError

_MOST_DIMENSIONS = 8
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> NDArray[Any]:
    """Return the array in an IDX file, in the machine's byte order."""
    with reading(path) as file:
        code, shape, size = _header(file, path)
        data = bytearray()  # an array over bytes could not be written to
        for block in _values(file, path, shape, size):
            data += block
    stored = np.frombuffer(data, dtype=code).reshape(shape)
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def check_idx(path: Path) -> None:
    """Read an IDX file through without keeping it; raise DataError where it is damaged."""
    with reading(path) as file:
        _, shape, size = _header(file, path)
        for _ in _values(file, path, shape, size):
            pass


def _header(file: IO[bytes], path: Path) -> tuple[str, tuple[int, ...], int]:
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] not in _TYPES or magic[3] == 0:
        raise DataError(f"{path} is not an IDX file: it begins with {magic.hex(' ') or 'nothing'}")
    dimensions = magic[3]
    raw = file.read(4 * dimensions)
    if len(raw) < 4 * dimensions:
        raise DataError(f"{path} ends inside its header; the file is truncated")
    shape = struct.unpack(f">{dimensions}I", raw)
    code = _TYPES[magic[2]]
    size = math.prod(shape) * int(code[2])
    if dimensions > _MOST_DIMENSIONS or size > LARGEST:
        raise DataError(
            f"{path} claims {size} bytes in {dimensions} dimensions; it is damaged or not a dataset"
        )
    return code, shape, size


def _values(file: IO[bytes], path: Path, shape: tuple[int, ...], size: int) -> Iterator[bytes]:
    """The values, block after block, so that a header that claims terabytes costs nothing."""
    found, promised = 0, f"{' x '.join(map(str, shape))} values"
    while found < size and (block := file.read(min(BLOCK, size - found))):
        found += len(block)
        yield block
    if found < size:
        raise DataError(
            f"{path} is truncated: its header promises {promised} ({size} bytes), but {found} are there"
        )
    if file.read(1):
        raise DataError(f"{path} has bytes after the {promised} its header promises; it is damaged")
