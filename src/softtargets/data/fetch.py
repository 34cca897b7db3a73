"""Fetch datasets: download, check, unpack; safe to interrupt, to repeat and to run twice at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from softtargets.data.catalogue import find_source
from softtargets.data.files import file_problem
from softtargets.data.progress import Progress
from softtargets.data.source import Archive, Source
from softtargets.data.unpack import LARGEST, unpack
from softtargets.data.verify import check_source
from softtargets.exceptions import DataError, StorageError
from softtargets.storage import exclusive, make_directory, storage_errors

if TYPE_CHECKING:
    from softtargets.data.download import Patience


def fetch(
    name: str, to: Path | str, progress: Progress | None = None, *, patience: Patience | None = None
) -> list[Path]:
    """Bring a dataset into the directory `to`; return its files. What is there and whole is kept."""
    return fetch_source(find_source(name), to, progress, patience=patience)


def fetch_source(
    source: Source,
    to: Path | str,
    progress: Progress | None = None,
    *,
    patience: Patience | None = None,
    largest: int = LARGEST,
) -> list[Path]:
    """Fetch any source, catalogued or not; `largest` bounds what an archive may unpack to."""
    root = Path(to).expanduser()
    if source.by_hand:
        raise DataError(f"{source.title} cannot be fetched automatically; {source.remedy(root)}")
    if not source.archives:
        return []
    make_directory(root)
    # A second process waits here, and then finds everything done.
    with exclusive(root / f".{source.name}.lock"):
        for archive in source.archives:
            if archive.unpack == "keep":
                _fetch_kept(archive, root, progress, patience)
            elif not _is_whole(source, root):
                _fetch_packed(archive, root, progress, patience, largest)
        checks = check_source(source, root)
    for check in checks:
        if not check.ok:
            raise DataError(f"{check.file} is not right even after fetching {source.title}: {check.problem}")
    return [check.file for check in checks]


def _fetch_kept(archive: Archive, root: Path, progress: Progress | None, patience: Patience | None) -> None:
    from softtargets.data.download import download  # brings the whole HTTP client with it

    destination = root / archive.file
    if not _is_right(archive, destination):
        _check_space(archive, root)
        download(archive, destination, progress, patience)


def _fetch_packed(
    archive: Archive, root: Path, progress: Progress | None, patience: Patience | None, largest: int
) -> None:
    packed = root / archive.file
    _fetch_kept(archive, root, progress, patience)
    assert archive.unpack != "keep"
    unpack(packed, archive.unpack, archive.top, root / archive.into, largest=largest)
    with storage_errors(packed):
        packed.unlink()


def _is_whole(source: Source, root: Path) -> bool:
    return all(check.ok for check in check_source(source, root))


def _is_right(archive: Archive, path: Path) -> bool:
    checkable = archive.checksum or archive.inspect
    return bool(checkable) and path.is_file() and not file_problem(path, archive.checksum, archive.inspect)


def _check_space(archive: Archive, root: Path) -> None:
    """Say before a long download, not after it, that it will not fit."""
    if archive.size is None:
        return
    needed = archive.size * (1 if archive.unpack == "keep" else 2)
    free = shutil.disk_usage(root).free
    if free < needed:
        raise StorageError(
            f"{archive.file} needs {needed / 2**20:.0f} MiB in {root}, where {free / 2**20:.0f} MiB are free"
        )
