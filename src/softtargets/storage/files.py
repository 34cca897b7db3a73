"""Writing files so that a crash at any moment leaves the old one or the new one, never half of either."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from softtargets.exceptions import StorageError

_REASONS = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EROFS: "the disk is read-only; choose another directory",
    errno.EACCES: "permission denied; choose another directory or change its permissions",
    errno.EPERM: "permission denied; choose another directory or change its permissions",
    errno.EEXIST: "a file of that name is in the way; choose another directory",
    errno.ENOTDIR: "a part of the path is a file, not a directory; choose another directory",
}


@contextmanager
def storage_errors(path: Path, action: str = "write") -> Iterator[None]:
    """Turn an operating-system refusal into one sentence that says what to do."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"cannot {action} {path}: {reason}") from None


def make_directory(path: Path) -> Path:
    """Create a directory and its parents; existing ones are fine."""
    with storage_errors(path, "create"):
        while True:
            try:
                path.mkdir(parents=True, exist_ok=True)
                return path
            except FileExistsError:
                # A file is in the way, or another process moved the directory off at this very moment.
                if path.exists() and not path.is_dir():
                    raise
                for part in (path, *path.parents):
                    if part.is_symlink() and not part.exists():
                        raise StorageError(
                            f"cannot create {path}: {part} links to {os.readlink(part)}, which does not exist; mount "
                            "its disk, or choose another directory"
                        ) from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` in one step when all is written, and is gone if not."""
    # Random, because processes of several machines may share a directory.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with storage_errors(path):
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content` in one step that survives a crash or a power cut."""
    with replacing(path) as file:
        file.write(content)


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically, in a form a person can read and a diff can show."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode(errors="backslashreplace"))  # names of files may be no text


def read_bounded(path: Path, most: int) -> bytes:
    """A whole file of at most so many bytes; what is no regular file is refused without waiting for it.

    A pipe would wait for a writer that never comes, and a device may have no end.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", str(path))
        content = file.read(min(most, found.st_size) + 1)  # Python makes room for as many as are asked for
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 20} MiB", str(path))
    return content


def read_json(path: Path, most: int = 1 << 28) -> Any:
    """The content of a JSON file that somebody may have edited; raises OSError or ValueError, whatever is in it."""
    return parse_json(read_bounded(path, most))


def parse_json(content: bytes) -> Any:
    """JSON of somebody else; raises ValueError, whatever is in it."""
    try:
        return _JSON.decode(content.decode("utf-8"))
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"it has {text}, which is not a number")


_JSON = json.JSONDecoder(parse_constant=_no_number)  # made once: stores have thousands of small files


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal."""
    # md5 guards against damage here, not against malice: it is what publishers of datasets give.
    found = hashlib.new(algorithm, usedforsecurity=False)
    with storage_errors(path, "read"), open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def fingerprint(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file, as the run manifest stores them."""
    with storage_errors(path, "read"):
        size = path.stat().st_size
    return {"bytes": size, "sha256": digest(path)}


def sweep_temporaries(directory: Path) -> None:
    """Remove what a killed writer left behind. Call only while holding the directory's lock."""
    for leftover in directory.rglob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def sync_directory(directory: Path) -> None:
    """Make a rename in it last; without this it may be lost in a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
