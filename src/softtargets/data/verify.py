"""Tell whether a dataset on disk is there, whole and the real one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from softtargets.data.catalogue import find_source
from softtargets.data.directory import data_directory
from softtargets.data.files import file_problem
from softtargets.data.folders import is_image
from softtargets.data.source import Folder, KnownFile, Source

Status = Literal["ready", "missing", "incomplete"]


@dataclass(frozen=True)
class Check:
    """One file or directory looked at; where it is not `ok`, what the problem is and what to do."""

    file: Path
    ok: bool
    problem: str = ""
    fix: str = ""


def verify(name: str, data_dir: Path | str | None = None) -> list[Check]:
    """Check a dataset's files: existence, size, checksum; image directories: how much is in them.

    A dataset that comes with a library (digits) has no files, hence no checks.
    """
    return check_source(find_source(name), data_directory(data_dir))


def status(name: str, data_dir: Path | str | None = None) -> Status:
    """Say at a glance, by existence only, whether a dataset can be loaded.

    >>> status("digits")
    'ready'
    """
    source, root = find_source(name), data_directory(data_dir)
    folders = [(root / folder.path).is_dir() for folder in source.folders]
    found = [
        [_present(file, root) is not None for file in layout] + folders for layout in source.layouts or ((),)
    ]
    if any(all(layout) for layout in found):
        return "ready"
    return "incomplete" if any(any(layout) for layout in found) else "missing"


def check_source(source: Source, root: Path) -> list[Check]:
    """Check the files of any source below `root`, in the layout that is there."""
    found = [_look_at_file(file, root) for file in _layout_on_disk(source, root)]
    found += [_look_at_folder(folder, root) for folder in source.folders]
    remedy = source.remedy(root)
    return [Check(path, not problem, problem, remedy if problem else "") for path, problem in found]


def _layout_on_disk(source: Source, root: Path) -> tuple[KnownFile, ...]:
    """Return the layout most of whose files exist; the first where that is a tie."""
    if not source.layouts:
        return ()
    return max(
        source.layouts, key=lambda layout: sum(_present(f, root) is not None for f in layout) / len(layout)
    )


def _present(file: KnownFile, root: Path) -> KnownFile | None:
    return next((form for form in (file, *file.instead) if (root / form.path).is_file()), None)


def _look_at_file(known: KnownFile, root: Path) -> tuple[Path, str]:
    """Where a file is, in whichever form, and what is wrong with it."""
    file = _present(known, root)
    if file is None:
        return root / known.path, "it is missing"
    path = root / file.path
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return path, f"it has {size} bytes, expected {file.size}"
    return path, file_problem(path, file.checksum, file.inspect)


def _look_at_folder(folder: Folder, root: Path) -> tuple[Path, str]:
    path = root / folder.path
    if not path.is_dir():
        return path, "it is missing"
    directories = sum(entry.is_dir() for entry in os.scandir(path))
    images = sum(map(is_image, chain.from_iterable(files for _, _, files in os.walk(path))))
    if (directories, images) == (folder.directories, folder.images):
        return path, ""
    expected = f"expected {folder.images} and {folder.directories}"
    return path, f"it has {images} images and {directories} directories, {expected}"
