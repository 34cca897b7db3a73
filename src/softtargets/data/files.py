"""Reading and hashing files with errors that name the file."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from softtargets.exceptions import DataError, StorageError
from softtargets.storage import digest

BLOCK = 1 << 20
LARGEST = 1 << 30  # bytes of one file, as they come out of gzip; EMNIST's largest has half of that


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its name ends in ``.gz``; damage raises DataError."""
    try:
        kind = os.stat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise DataError(f"{path} is a pipe or a device, not a file")
        with cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise DataError(f"{path} is not a complete gzip file: {problem}") from None
    except OSError as problem:
        raise StorageError(f"could not read {path}: {problem.strerror or problem}") from None


def read_all(path: Path) -> bytes:
    """Read a whole plain or gzipped file."""
    with reading(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"{path} has more than {LARGEST >> 20} MiB, far more than any file of a dataset here")
    return content


def read_lines(path: Path) -> list[str]:
    r"""Read UTF-8 text, one entry a line; only ``\n`` (or ``\r\n``) ends a line.

    `str.splitlines` would also break at U+2028 and friends, which do occur inside sentences, and then two
    aligned files no longer are.
    """
    return lines_of(read_all(path), str(path))


def lines_of(data: bytes, called: str) -> list[str]:
    """The same of bytes that were read already, such as standard input."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    lines = []
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n") if data else [], start=1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as problem:
            raise DataError(
                f"{called} line {number} is not valid UTF-8 (byte {problem.start + 1} of the line: "
                f"{problem.reason}); convert the file to UTF-8"
            ) from None
    return lines


def file_problem(path: Path, checksum: str | None, inspect: Callable[[Path], object] | None) -> str:
    """What is wrong with a file's checksum (``"md5:..."`` or ``"sha256:..."``) or content, or an empty string."""
    if checksum:
        algorithm, _, expected = checksum.partition(":")
        found = digest(path, algorithm)
        if found != expected:
            return f"its {algorithm} is {found}, expected {expected}"
    if inspect:
        try:
            inspect(path)
        except DataError as damage:
            return str(damage)
    return ""
