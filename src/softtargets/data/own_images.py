"""A folder of one's own images as a dataset: which images they are, in sixteen digits, and a name.

The digest is of every image's place below the folder, its length, and a hash of its content: of files up to 64 KiB
all of it, of larger ones 16 KiB at the beginning, in the middle and at the end. So 1.3 million photographs take
minutes where reading all of them would take an hour on a network disk. Of compressed pictures (JPEG, PNG, WebP, GIF)
another content with the same length and the same three pieces does not come about by itself; whoever makes one on
purpose deceives nobody but themselves. Uncompressed files (BMP, PPM, TIFF) could differ between the pieces, and are
read as a whole.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from softtargets.data.directory import data_directory
from softtargets.data.folders import walk_images
from softtargets.data.progress import Progress, Silence
from softtargets.data.remembering import remembered, sixteen_digits
from softtargets.exceptions import DataError
from softtargets.storage import make_directory, storage_errors

SPLIT_NAMES = ("train", "test", "val")
_WHOLE = 1 << 16
_PIECE = 1 << 14
_UNCOMPRESSED = (".bmp", ".ppm", ".tif", ".tiff")
_THREADS = 16  # most of the time they wait for the disk
_BLOCK = 64


@dataclass(frozen=True)
class ListedFile:
    """An image below a folder, its length in bytes, and when it was changed last."""

    path: str
    size: int
    changed: int


def listed_files(root: Path, progress: Progress | None = None) -> list[ListedFile]:
    """Every image below the splits of a folder, sorted by path."""
    listener = progress or Silence()
    listener.start(f"listing {root.name}", None, 0)
    found: list[ListedFile] = []
    try:
        for split in SPLIT_NAMES:
            if (root / split).is_dir():
                for some in walk_images(root, split):
                    found += [_listed(root, path, entry) for path, entry in some]
                    listener.advance(len(some))
    finally:
        listener.finish()
    return sorted(found, key=lambda file: file.path)


def _listed(root: Path, path: str, entry: os.DirEntry[str]) -> ListedFile:
    with storage_errors(root / path, "read"):
        about = entry.stat()
    return ListedFile(path, about.st_size, about.st_mtime_ns)


def folder_digest(root: Path, progress: Progress | None = None) -> str:
    """Which images these are, in sixteen hexadecimal digits, wherever the folder is.

    What was found is remembered for as long as no file has another length or time of change.
    """
    files = listed_files(root, progress)
    if not files:
        raise DataError(
            f"{root} has no images below {', '.join(SPLIT_NAMES)}; expected train/CLASS/IMAGE and test/CLASS/IMAGE "
            "(or val instead of test)"
        )
    stamp = sixteen_digits([str(root.resolve()), *(f"{one.path} {one.size} {one.changed}" for one in files)])
    return str(remembered("folder", stamp, lambda: _digest(root, files, progress)))


def _digest(root: Path, files: Sequence[ListedFile], progress: Progress | None) -> str:
    listener = progress or Silence()
    listener.start(f"reading {root.name}", len(files), 0)

    def lines(start: int) -> list[str]:
        block = files[start : start + _BLOCK]
        return [f"{one.path} {one.size} {content_hash(root / one.path, one.size)}" for one in block]

    found: list[str] = []
    pool = ThreadPoolExecutor(_THREADS)
    try:
        for some in pool.map(lines, range(0, len(files), _BLOCK)):
            found += some
            listener.advance(len(some))
    finally:
        pool.shutdown(cancel_futures=True)
        listener.finish()
    return sixteen_digits(found)


def content_hash(path: Path, size: int) -> str:
    """Of all of a small or uncompressed file, and of three pieces of a large compressed one (BLAKE2b)."""
    found = hashlib.blake2b(digest_size=16)
    with storage_errors(path, "read"), open(path, "rb") as file:
        if size <= _WHOLE or path.suffix.lower() in _UNCOMPRESSED:
            while block := file.read(1 << 20):
                found.update(block)
        else:
            for place in (0, (size - _PIECE) // 2, size - _PIECE):
                file.seek(place)
                found.update(file.read(_PIECE))
    return found.hexdigest()


def adopt_folder(
    path: Path, data_dir: Path | None = None, progress: Progress | None = None
) -> tuple[str, str]:
    """Give a folder of images a place in the data directory, and return what a recipe calls it: its name and digest.

    It stays where it is: the place is a link, called ``images-`` and the digest, so that the same images have the same
    name on every machine.
    """
    root = path.expanduser()
    if not (root / "train").is_dir():
        raise DataError(
            f"{root} has no directory 'train'; expected train/CLASS/IMAGE and test/CLASS/IMAGE (or val instead of "
            "test)"
        )
    if not any((root / name).is_dir() for name in SPLIT_NAMES[1:]):
        raise DataError(
            f"{root} has neither 'test' nor 'val'; put the images that models are tested on into one of them"
        )
    digest = folder_digest(root, progress)
    name = f"images-{digest}"
    place = data_directory(data_dir) / name
    if place.is_symlink() or not place.exists():
        make_directory(place.parent)
        with storage_errors(place):
            place.unlink(missing_ok=True)
            place.symlink_to(root.resolve(), target_is_directory=True)
    return name, digest


def check_digest(root: Path, digest: str, progress: Progress | None = None) -> None:
    """Refuse a folder whose images are not those that a recipe was made for."""
    if not root.is_dir():
        raise DataError(
            f"{root} does not exist; if the images are elsewhere on this machine: softtargets data folder PATH"
        )
    found = folder_digest(root, progress)
    if found != digest:
        raise DataError(
            f"{root} does not have the images that the recipe was made for: their digest is {found}, not {digest}. "
            "Put the original images back, or make a recipe for these with: softtargets data folder PATH"
        )
