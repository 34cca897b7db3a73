"""The records that describe a dataset: what it is called, where it comes from, which files it consists of."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from softtargets.exceptions import DataError, nearest

Inspect = Callable[[Path], object]
"""Reads a file and raises DataError where its content is not the expected one."""


@dataclass(frozen=True)
class Archive:
    """One download. Paths are relative to the data directory.

    A kept archive (``unpack="keep"``) is itself the dataset's file. Of a tar or zip the directory `top`
    becomes the directory `into`; what lies outside `top` is left behind.
    """

    file: str
    urls: tuple[str, ...]
    checksum: str | None = None
    size: int | None = None
    unpack: Literal["keep", "tar", "zip"] = "keep"
    top: str = ""
    into: str = ""
    inspect: Inspect | None = None


@dataclass(frozen=True)
class KnownFile:
    """A file the dataset consists of; `instead` are other forms of it that readers take as well."""

    path: str
    size: int | None = None
    checksum: str | None = None
    inspect: Inspect | None = None
    instead: tuple[KnownFile, ...] = ()


@dataclass(frozen=True)
class Folder:
    """A directory tree of images: so many directories directly inside it, so many images in all."""

    path: str
    directories: int
    images: int


@dataclass(frozen=True)
class Source:
    """A dataset: what it is, whom to thank, where to get it and how to tell that it is whole.

    A dataset may come in several `layouts`; any one of them is enough. `by_hand` is for data that cannot
    be downloaded by a program: it says what to do, with ``{to}`` for the data directory.
    """

    name: str
    title: str
    what: str
    citation: str
    terms: str
    homepage: str
    archives: tuple[Archive, ...] = ()
    layouts: tuple[tuple[KnownFile, ...], ...] = ()
    folders: tuple[Folder, ...] = ()
    by_hand: str = ""

    def require(self, root: Path, *paths: Path) -> None:
        """Refuse to go on without these files or directories, and say how to get them."""
        for path in paths:
            if not path.exists():
                raise DataError(
                    f"{self.title} is missing '{path.name}' in {path.parent}; {self.remedy(root)}"
                )

    def remedy(self, data_dir: Path) -> str:
        """Say how to get this dataset into `data_dir`, as the end of an error message."""
        if self.by_hand:
            return self.by_hand.format(to=data_dir)
        return f"get it with: softtargets data fetch {self.name} --to {shlex.quote(str(data_dir))}"


def known_files(folder: str, *lines: str) -> tuple[KnownFile, ...]:
    """Files of a folder as ``md5sum`` and ``sha256sum`` list them, sum and name; then the size, if it is known."""
    files = []
    for found, name, *size in map(str.split, lines):
        checksum = f"{'md5' if len(found) == 32 else 'sha256'}:{found}"
        files.append(KnownFile(f"{folder}/{name}", int(size[0]) if size else None, checksum))
    return tuple(files)


def named_files(folder: str, *names: str) -> tuple[KnownFile, ...]:
    """Files of a folder of which no sums are published."""
    return tuple(KnownFile(f"{folder}/{name}") for name in names)


def one_of(value: str, known: Iterable[str], problem: str, there: str = "there are") -> None:
    """Refuse what is not among the known names, with the nearest of them.

    >>> one_of("trian", ("train", "test"), "digits has no split")
    Traceback (most recent call last):
    softtargets.exceptions.DataError: digits has no split 'trian' (did you mean 'train'?); there are train, test
    """
    names = list(known)
    if value not in names:
        raise DataError(f"{problem} '{value}'{nearest(value, names)}; {there} {', '.join(names)}")
