"""The IDX format of MNIST and its descendants, plain or gzipped.

Two zero bytes, a type code, the number of dimensions, each dimension as a big-endian 32-bit number, then
the values, big-endian, last dimension fastest. The length follows from the header, so a file that is a
byte too short or too long is refused.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from softtargets.data.files import BLOCK, read_exactly, reading
from softtargets.exceptions import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: Path) -> NDArray[Any]:
    """Return the array in an IDX file, in the machine's byte order."""
    import numpy as np

    with reading(path) as file:
        code, shape, expected = _header(file, path)
        data = read_exactly(file, expected)
        _check_length(path, shape, expected, len(data), trailing=bool(file.read(1)))
    stored = np.frombuffer(data, dtype=code).reshape(shape)
    return stored.astype(stored.dtype.newbyteorder("="), copy=False)


def check_idx(path: Path) -> None:
    """Read an IDX file through without keeping it; raise DataError where it is damaged."""
    with reading(path) as file:
        _, shape, expected = _header(file, path)
        found = 0
        while found < expected and (block := file.read(min(BLOCK, expected - found))):
            found += len(block)
        _check_length(path, shape, expected, found, trailing=bool(file.read(1)))


def _header(file: IO[bytes], path: Path) -> tuple[str, tuple[int, ...], int]:
    magic = read_exactly(file, 4)
    if len(magic) < 4 or magic[:2] != b"\x00\x00" or magic[2] not in _TYPES or magic[3] == 0:
        raise DataError(f"{path} is not an IDX file: it begins with {bytes(magic).hex(' ') or 'nothing'}")
    dimensions = magic[3]
    raw = read_exactly(file, 4 * dimensions)
    if len(raw) < 4 * dimensions:
        raise DataError(f"{path} ends inside its header; the file is truncated")
    shape = struct.unpack(f">{dimensions}I", raw)
    code = _TYPES[magic[2]]
    return code, shape, math.prod(shape) * int(code[2])


def _check_length(path: Path, shape: tuple[int, ...], expected: int, found: int, *, trailing: bool) -> None:
    size = " x ".join(map(str, shape))
    if found < expected:
        raise DataError(
            f"{path} is truncated: its header promises {size} values ({expected} bytes), {found} are there"
        )
    if trailing:
        raise DataError(f"{path} has bytes after the {size} values its header promises; it is damaged")
