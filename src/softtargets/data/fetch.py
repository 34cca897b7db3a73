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
            file = root / archive.file
            if archive.unpack == "keep":
                _download(archive, file, root, progress, patience)
            elif not all(check.ok for check in check_source(source, root)):
                _download(archive, file, root, progress, patience)
                unpack(file, archive.unpack, archive.top, root / archive.into, largest=largest)
                with storage_errors(file):
                    file.unlink()
        checks = check_source(source, root)
    for check in checks:
        if not check.ok:
            raise DataError(f"{check.file} is wrong even after fetching {source.title}: {check.problem}")
    return [check.file for check in checks]


def _download(
    archive: Archive, file: Path, root: Path, progress: Progress | None, patience: Patience | None
) -> None:
    """Download an archive, unless it is there and known to be right."""
    from softtargets.data.download import download  # brings the whole HTTP client with it

    checkable = archive.checksum or archive.inspect
    if not (checkable and file.is_file() and not file_problem(file, archive.checksum, archive.inspect)):
        _check_space(archive, root)
        download(archive, file, progress, patience)


def _check_space(archive: Archive, root: Path) -> None:
    """Say before a long download, not after it, that it will not fit."""
    if archive.size is None:
        return
    needed = archive.size * (1 if archive.unpack == "keep" else 2)
    free = shutil.disk_usage(root).free
    if free < needed:
        raise StorageError(
            f"{archive.file} needs {needed / 2**20:.0f} MiB in {root}, but only {free / 2**20:.0f} MiB are free"
        )
