"""Unpack tar and zip archives without trusting them.

Only plain files and directories come out, only below the target, only up to a limit, and all at once:
everything is unpacked beside the target first and then renamed, so that a crash leaves the target as it
was.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from softtargets.data.files import BLOCK
from softtargets.exceptions import DataError
from softtargets.storage import make_directory, storage_errors

LARGEST = 16 << 30
MOST_MEMBERS = 1_000_000
_SUFFIX = ".unpacking"
_DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


# A member's name, whether it is a directory, and how to open it if not.
_Member = tuple[str, bool, Callable[[], IO[bytes] | None]]


def unpack(
    archive: Path, kind: Literal["tar", "zip"], top: str, target: Path, *, largest: int = LARGEST
) -> None:
    """Make the archive's directory `top` the directory `target`.

    Where `target` exists already, files are replaced one by one and others left alone. More than
    `largest` bytes, counted as they come out rather than as declared, are refused.
    """
    make_directory(target.parent)
    with storage_errors(target.parent):
        _remove_leftovers(target)
        workshop = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=_SUFFIX, dir=target.parent))
    try:
        _extract(archive, kind, top, workshop, largest)
        if not (workshop / top).is_dir():
            raise DataError(f"{archive.name} has no directory '{top}'; it is not the expected archive")
        with storage_errors(target):
            _move_into_place(workshop / top, target)
    finally:
        shutil.rmtree(workshop, ignore_errors=True)


def _extract(archive: Path, kind: Literal["tar", "zip"], top: str, workshop: Path, largest: int) -> None:
    left = largest
    prefix = PurePosixPath(top).parts
    try:
        members = _tar(archive) if kind == "tar" else _zip(archive)
        for count, (name, directory, open_member) in enumerate(members, start=1):
            parts = _safe_parts(name, archive)
            if count > MOST_MEMBERS:
                raise DataError(f"{archive.name} has more than {MOST_MEMBERS} members; refused")
            if parts[: len(prefix)] != prefix:
                continue
            destination = workshop.joinpath(*parts)
            make_directory(destination if directory else destination.parent)
            if directory:
                continue
            content = open_member()
            assert content is not None  # that of directories is
            with content:
                left = _copy(content, destination, left, archive)
    except _DAMAGE as problem:
        raise DataError(f"{archive} is damaged: {problem}; remove it and fetch it again") from None


def _copy(content: IO[bytes], destination: Path, left: int, archive: Path) -> int:
    try:
        file = open(destination, "xb")  # noqa: SIM115  # closed by the with below
    except FileExistsError:
        raise DataError(f"{archive.name} holds '{destination.name}' twice; refused") from None
    except OSError:
        with storage_errors(destination):
            raise
    with file:
        while block := content.read(BLOCK):
            left -= len(block)
            if left < 0:
                raise DataError(f"{archive.name} unpacks to more than expected; refused as a likely bomb")
            with storage_errors(destination):
                file.write(block)
    return left


def _tar(archive: Path) -> Iterator[_Member]:
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            if not (member.isdir() or member.isreg()) or member.issparse():
                raise DataError(f"{archive.name} holds '{member.name}', a link or device; refused")
            yield member.name, member.isdir(), partial(tar.extractfile, member)


def _zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as container:
        for entry in container.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise DataError(f"{archive.name} holds '{entry.filename}', a link or device; refused")
            if entry.flag_bits & 0x1:
                raise DataError(f"{archive.name} holds '{entry.filename}', which is encrypted; refused")
            # The original name: zipfile itself changes backslashes and cuts at NUL.
            yield entry.orig_filename, entry.is_dir(), partial(container.open, entry)


def _safe_parts(name: str, archive: Path) -> tuple[str, ...]:
    pure = PurePosixPath(name)
    unsafe = pure.is_absolute() or ".." in pure.parts or "\\" in name or "\0" in name or ":" in name
    if unsafe:
        raise DataError(f"{archive.name} holds {name!r:.200}, a path that leads outside; refused")
    return pure.parts


def _move_into_place(made: Path, target: Path) -> None:
    if not target.exists():
        os.replace(made, target)
        return
    for folder, _, files in os.walk(made):
        inside = target / os.path.relpath(folder, made)
        inside.mkdir(parents=True, exist_ok=True)
        for file in files:
            os.replace(Path(folder) / file, inside / file)


def _remove_leftovers(target: Path) -> None:
    """Clear away what a killed process left; the caller holds the lock, so nobody is using it."""
    for leftover in target.parent.glob(f".{target.name}-*{_SUFFIX}"):
        shutil.rmtree(leftover, ignore_errors=True)
