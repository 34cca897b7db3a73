"""Reading, hashing and writing files with errors that name the file."""

from __future__ import annotations

import errno
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from softtargets.exceptions import DataError, StorageError

BLOCK = 1 << 20


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its name ends in ``.gz``; damage raises DataError."""
    try:
        with cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise DataError(f"{path} is not a complete gzip file: {problem}") from None
    except OSError as problem:
        raise StorageError(f"could not read {path}: {problem.strerror or problem}") from None


def read_exactly(file: IO[bytes], count: int) -> bytearray:
    """Read up to `count` bytes, fewer only at the end of the file.

    Memory grows with what is really there, so a header that claims terabytes costs nothing.
    """
    data = bytearray()
    while len(data) < count:
        block = file.read(min(BLOCK, count - len(data)))
        if not block:
            break
        data += block
    return data


def read_all(path: Path) -> bytes:
    """Read a whole plain or gzipped file."""
    with reading(path) as file:
        return file.read()


def read_lines(path: Path) -> list[str]:
    r"""Read UTF-8 text, one entry a line; only ``\n`` (or ``\r\n``) ends a line.

    `str.splitlines` would also break at U+2028 and friends, which do occur inside sentences, and then two
    aligned files no longer are.
    """
    data = read_all(path).removeprefix(b"\xef\xbb\xbf")
    if data.endswith(b"\n"):
        data = data[:-1]
    elif not data:
        return []
    raw = data.split(b"\n")
    lines = []
    for number, line in enumerate(raw, start=1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as problem:
            raise DataError(
                f"{path} line {number} is not valid UTF-8 (byte {problem.start + 1} of the line: "
                f"{problem.reason}); convert the file to UTF-8"
            ) from None
    return lines


def checksum_problem(path: Path, checksum: str) -> str | None:
    """Compare a file with ``"md5:..."`` or ``"sha256:..."``; return what differs, or None."""
    algorithm, _, expected = checksum.partition(":")
    found = _digest(path, algorithm)
    return None if found == expected else f"{algorithm} is {found}, expected {expected}"


def _digest(path: Path, algorithm: str) -> str:
    # md5 guards against damage here, not against malice: it is what the publishers give.
    digest = hashlib.new(algorithm, usedforsecurity=False)
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
    except OSError as problem:
        raise StorageError(f"could not read {path}: {problem.strerror or problem}") from None
    return digest.hexdigest()


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the disk's refusals while writing `path` into StorageError."""
    try:
        yield
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"the disk is full: could not write {path}; free some space and run the command again"
            ) from None
        if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(f"not allowed to write {path}: {problem.strerror}") from None
        raise StorageError(f"could not write {path}: {problem.strerror or problem}") from None
