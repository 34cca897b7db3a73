"""Zip archives of arrays: what .npz and .pt are. Nothing is unpacked that the directory does not account for.

``numpy.load`` would unpack a whole array of a .npz at once. So stored arrays are read where they lie in the file
(`content_offset`), and compressed ones as they come out of the decompressor, some rows at a time.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, FileArray, rechunk
from softtargets.predictions.errors import FoundFile, reading
from softtargets.predictions.npy import Header, arrays_at, read_header
from softtargets.predictions.raw import as_tensor, type_name

# What zipfile and zlib raise for archives that are damaged, each in its own place.
ZIP_PROBLEMS: tuple[type[Exception], ...] = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, IndexError, KeyError),
    *(NotImplementedError, RuntimeError, OverflowError),
)
DEFLATE_RATIO = 1032  # deflate cannot make anything smaller than that


def members(file: FoundFile) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive by name; refuses those that cannot be what the directory says."""
    with reading(file.path, *ZIP_PROBLEMS), zipfile.ZipFile(file.path) as archive:
        found = {info.filename: info for info in archive.infolist() if not info.filename.endswith("/")}
    for info in found.values():
        if info.flag_bits & 1:
            raise file.refused(f"has an encrypted member '{info.filename}'", "unpack it first")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise file.refused(
                f"has a member '{info.filename}' with an unusual compression", "save it with numpy.savez"
            )
        most = info.compress_size * (1 if info.compress_type == zipfile.ZIP_STORED else DEFLATE_RATIO)
        if info.compress_size > file.size or info.file_size > most:
            raise file.refused(
                f"is refused: its member '{info.filename}' claims {info.file_size} bytes, more than the file can hold",
                "it is damaged or made to exhaust memory",
            )
    return found


def content_offset(file: FoundFile, info: zipfile.ZipInfo) -> int:
    """Where the bytes of a stored member begin in the file."""
    with reading(file.path, *ZIP_PROBLEMS), open(file.path, "rb") as stream:
        stream.seek(info.header_offset)
        local = stream.read(30)
        if len(local) < 30 or local[:4] != b"PK\x03\x04":
            raise zipfile.BadZipFile(f"no header for '{info.filename}'")
        names, extra = struct.unpack("<HH", local[26:30])
    offset = int(info.header_offset) + 30 + int(names) + int(extra)
    if offset + info.file_size > file.size:
        raise file.refused(f"is damaged or cut off within '{info.filename}'", "save or download it again")
    return offset


@contextmanager
def opened(path: Path, info: zipfile.ZipInfo) -> Iterator[BinaryIO]:
    """The content of a member, as it comes out of the decompressor."""
    with reading(path, *ZIP_PROBLEMS), zipfile.ZipFile(path) as archive, archive.open(info) as stream:
        yield cast(BinaryIO, stream)


def open_npz(file: FoundFile) -> dict[str, FileArray]:
    """The arrays of a .npz file by name."""
    found: dict[str, FileArray] = {}
    wanted = {name: info for name, info in members(file).items() if name.endswith(".npy")}
    headers: dict[str, Header] = {}
    # The directory is read once: an archive may have a member for each of thousands of layers.
    with reading(file.path, *ZIP_PROBLEMS), zipfile.ZipFile(file.path) as archive:
        for member, info in wanted.items():
            with archive.open(info) as stream:
                headers[member] = read_header(cast(BinaryIO, stream), file, member.removesuffix(".npy"))
    for member, info in wanted.items():
        name, header = member.removesuffix(".npy"), headers[member]
        if info.compress_type == zipfile.ZIP_STORED:
            offset = content_offset(file, info) + header.length
            found |= arrays_at(file, name, header, offset, info.file_size - header.length)
        else:
            arrays_at(file, name, header, 0, info.file_size - header.length)  # the same checks
            found[name] = DeflatedArray(file.path, name, header, info)
    if not found:
        raise file.refused("has no arrays in it", "save them with numpy.savez")
    return found


class DeflatedArray(FileArray):
    """An array that must be decompressed from its beginning whenever it is read."""

    seekable = False

    def __init__(self, path: Path, name: str, header: Header, info: zipfile.ZipInfo) -> None:
        self.path, self.name, self.shape = path, name, header.shape
        self.dtype = "other" if header.dtype.names is not None else type_name(header.dtype)
        self._header, self._info = header, info
        self._turned = header.fortran and len(header.shape) > 1
        self.contiguous = not self._turned

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Rows as they come out of the decompressor."""
        self.refuse_unreadable()
        return rechunk(self._pieces(start), rows)

    def _pieces(self, start: int) -> Iterator[Tensor]:
        if self._turned and self._header.content > 16 * BLOCK_BYTES:
            raise self.refused(
                f"has the array {self.describe()} stored column by column and compressed",
                "save numpy.ascontiguousarray(...) of it",
            )
        row = self._header.dtype.itemsize * math.prod(self.shape[1:])
        step = max(1, self.shape[0] if self._turned else BLOCK_BYTES // max(1, row))
        with opened(self.path, self._info) as file:
            file.read(self._header.length)
            for first in range(0, self.shape[0], step):
                count = min(step, self.shape[0] - first)
                content = file.read(count * row)
                if len(content) < count * row:
                    raise self.refused(f"ends within the array '{self.name}'", "it is damaged; save it again")
                if first + count <= start:
                    continue
                found = np.frombuffer(content, self._header.dtype)
                order: Literal["F", "C"] = "F" if self._turned else "C"
                piece = as_tensor(found.reshape((count, *self.shape[1:]), order=order), self.dtype)
                yield piece[max(0, start - first) :]
            file.read(1)  # the end, where the checksum is compared
