"""Zip and gzip files of somebody else, read with bounds: no member is a path, and none takes more than is allowed."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from softtargets.storage.files import storage_errors

_BLOCK = 1 << 20
# What Python's readers raise over damaged, encrypted or unknown content.
_DAMAGE = (
    BadZipFile,
    BadGzipFile,
    zlib.error,
    EOFError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    OSError,
)


class Archive:
    """An open zip file; whatever is wrong with it is a ValueError. Threads may read from it at the same time."""

    def __init__(self, file: ZipFile) -> None:
        self._file = file
        self.names = file.namelist()
        self._there = frozenset(self.names)  # a pack has thousands, and each is looked for
        if len(self._there) < len(self.names):
            raise ValueError("it has two members with the same name")

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Archive]:
        """Open a file; one that is no zip, or only the beginning of one, raises a ValueError."""
        with storage_errors(path, "read"):
            content = path.open("rb")
        with content:
            try:
                file = ZipFile(content)
            except _DAMAGE as error:
                raise ValueError(str(error)) from None
            with file:
                yield cls(file)

    def read(self, name: str, most: int) -> bytes:
        """A whole member of at most so many bytes."""
        self._check(name, most)
        try:
            return self._file.read(name)  # never more than the size that was just looked at
        except _DAMAGE as error:
            raise ValueError(f"{name} is damaged ({error})") from None

    def sha256(self, name: str, most: int) -> str:
        """The checksum of a member, without holding all of it."""
        self._check(name, most)
        found = hashlib.sha256()
        try:
            with self._file.open(name) as member:
                while block := member.read(_BLOCK):
                    found.update(block)
        except _DAMAGE as error:
            raise ValueError(f"{name} is damaged ({error})") from None
        return found.hexdigest()

    def _check(self, name: str, most: int) -> None:
        if name not in self._there:
            raise ValueError(f"{name} is missing")
        if self._file.getinfo(name).file_size > most:
            raise ValueError(f"{name} has more than {most >> 20} MiB")


def unzipped(content: bytes, most: int) -> bytes:
    """What a gzip file says, if that is at most so many bytes; anything else raises a ValueError.

    >>> import gzip
    >>> unzipped(gzip.compress(b"abc"), 3)
    b'abc'
    """
    try:
        with GzipFile(fileobj=io.BytesIO(content)) as file:
            found = file.read(most + 1)
    except _DAMAGE as error:
        raise ValueError(f"it is damaged ({error})") from None
    if len(found) > most:
        raise ValueError(f"it has more than {most >> 20} MiB")
    return found
