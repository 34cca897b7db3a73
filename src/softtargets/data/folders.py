"""Images in directories: a class per directory, CUB-200-2011, Tiny ImageNet, ImageNet.

Listing is separate from decoding. An `ImageIndex` is cheap: it touches directory entries and small text
files only. `decode` then reads all images into memory, each as `decoding.py` says; a training that is shown more than
fits there has them decoded batch by batch instead (`decoders.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from softtargets.data.decoding import Decoding, decode_file, put
from softtargets.data.examples import Examples
from softtargets.data.files import read_lines
from softtargets.data.progress import Progress, Silence
from softtargets.exceptions import DataError, nearest
from softtargets.storage import storage_errors

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".ppm", ".tif", ".tiff"})
CUB200_LISTS = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt")
_BLOCK = 64


@dataclass(frozen=True, eq=False)
class ImageIndex:
    """Where the images are (paths below `root`, as text: ImageNet has 1.3 million) and what they show."""

    root: Path
    paths: tuple[str, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def take(self, positions: Sequence[int]) -> ImageIndex:
        """The images at these positions, in their order."""
        paths = tuple(self.paths[position] for position in positions)
        return ImageIndex(self.root, paths, self.labels[list(positions)], self.classes)

    def __len__(self) -> int:
        return len(self.paths)


def image_folder(root: Path, classes: Sequence[str] | None = None) -> ImageIndex:
    """List a directory that has one subdirectory of images per class, classes in name order.

    With `classes` given (the train split's), directories must be among them, so that train and test
    number their classes alike.
    """
    found = class_directories(root)
    order = list(classes) if classes is not None else found
    number = {name: label for label, name in enumerate(order)}
    for name in found:
        if name not in number:
            raise DataError(
                f"{root / name} is a class that the training split does not have{nearest(name, order)}"
            )
    return _index(root, ((path, number[name]) for name in found for path in _images(root, name)), order)


def class_directories(root: Path) -> list[str]:
    """Return the names of the class directories, sorted; hidden ones are not classes."""
    if not root.is_dir():
        raise DataError(f"{root} is not a directory; expected one with a subdirectory of images per class")
    with os.scandir(root) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    if not names:
        raise DataError(f"{root} has no subdirectories; expected one per class")
    return names


def cub200(root: Path, split: str) -> ImageIndex:
    """List CUB-200-2011's train or test images by its own four text files."""
    names = _numbered(root / "images.txt")
    labels = _numbered(root / "image_class_labels.txt")
    trains = _numbered(root / "train_test_split.txt")
    classes = _numbered(root / "classes.txt")
    for file, entries in (("image_class_labels.txt", labels), ("train_test_split.txt", trains)):
        if entries.keys() != names.keys():
            raise DataError(f"{root / file} does not list the same images as {root / 'images.txt'}")
    number = {key: label for label, key in enumerate(classes)}
    wanted = "1" if split == "train" else "0"
    rows = []
    for key, name in names.items():
        if labels[key] not in number:
            raise DataError(f"{root / 'image_class_labels.txt'} has class {labels[key]}, not in classes.txt")
        if trains[key] == wanted:
            rows.append((f"images/{_inside(name, root / 'images.txt')}", number[labels[key]]))
    titles = [name.partition(".")[2].replace("_", " ") or name for name in classes.values()]
    return _index(root, rows, titles)


def tiny_imagenet(root: Path, split: str) -> ImageIndex:
    """List Tiny ImageNet's train images, or for ``test`` its labelled validation images.

    Classes are numbered by sorted WordNet id and named by the first of their words.
    """
    wnids = sorted(line.strip() for line in read_lines(root / "wnids.txt") if line.strip())
    number = {wnid: label for label, wnid in enumerate(wnids)}
    if split == "train":
        rows = [(path, number[wnid]) for wnid in wnids for path in _images(root, f"train/{wnid}")]
    else:
        annotations = root / "val" / "val_annotations.txt"
        rows = []
        for line_number, line in enumerate(read_lines(annotations), start=1):
            columns = line.split("\t")
            if len(columns) < 2 or columns[1] not in number:
                raise DataError(f"{annotations} line {line_number} names no image with a class of wnids.txt")
            rows.append((f"val/images/{_inside(columns[0], annotations)}", number[columns[1]]))
    return _index(root, rows, _words(root / "words.txt", wnids))


def imagenet(root: Path, split: str) -> ImageIndex:
    """List ImageNet's ``train/<wnid>`` or, for ``test``, its ``val/<wnid>`` images."""
    return split_folder(root, split, "val")


def split_folder(root: Path, split: str, held_out: str) -> ImageIndex:
    """List `train`, or for ``test`` the folder of the held-out images with the classes of training."""
    train = root / "train"
    if split == "train":
        return image_folder(train)
    return image_folder(root / held_out, class_directories(train) if train.is_dir() else None)


def decode(
    index: ImageIndex, how: Decoding | int, progress: Progress | None = None, workers: int | None = None
) -> Examples:
    """Read every image as RGB into memory, as `how` says; a number is the size of middle squares.

    Runs in threads, which decode in parallel because Pillow lets go of the interpreter's lock.
    """
    how = how if isinstance(how, Decoding) else Decoding(how)
    _check_memory(index, how.size)
    images = np.empty((len(index), 3, how.size, how.size), np.uint8)
    sizes = np.empty((len(index), 2), np.int32)

    def fill(start: int) -> int:
        stop = min(start + _BLOCK, len(index))
        for position in range(start, stop):
            pixels = decode_file(index.root / index.paths[position], how)
            sizes[position] = put(pixels, np.moveaxis(images[position], 0, 2))
        return stop - start

    listener = progress or Silence()
    listener.start(index.root.name, len(index), 0)
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        for count in pool.map(fill, range(0, len(index), _BLOCK)):
            listener.advance(count)
    finally:
        pool.shutdown(cancel_futures=True)
        listener.finish()
    return Examples(images, index.labels, index.classes, sizes if how.keep == "picture" else None)


def _check_memory(index: ImageIndex, size: int) -> None:
    needed = len(index) * 3 * size * size
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return  # this system does not say; the attempt will tell
    if needed > available:
        raise DataError(
            f"{len(index)} images of {size} x {size} need {needed / 2**30:.1f} GiB, but this machine has only "
            f"{available / 2**30:.1f} GiB; choose a smaller size"
        )


def _index(root: Path, rows: Iterable[tuple[str, int]], classes: Sequence[str]) -> ImageIndex:
    listed = list(rows)
    labels = np.array([label for _, label in listed], np.int64)
    return ImageIndex(root, tuple(path for path, _ in listed), labels, tuple(classes))


def _images(root: Path, below: str) -> list[str]:
    """Return the images anywhere below a directory, sorted, as paths relative to `root`."""
    found = [path for some in walk_images(root, below) for path, _ in some]
    if not found:
        raise DataError(f"{root / below} holds no images; every class needs at least one")
    return sorted(found)


def walk_images(
    root: Path, below: str, above: tuple[tuple[int, int], ...] = ()
) -> Iterator[list[tuple[str, os.DirEntry[str]]]]:
    """The images of each directory: their paths below `root`, and what is known of them.

    Directories may be links to others, but not to one that they lie in; hidden ones have no images. Whoever lists
    images, to learn from them or to say which they are, lists the same.
    """
    found, inside = [], []
    with storage_errors(root / below, "read"), os.scandir(root / below) as entries:
        about = os.stat(root / below)
        if (here := (about.st_dev, about.st_ino)) in above and about.st_ino:  # 0 where there are no numbers
            raise DataError(
                f"{root / below} links back to a directory that contains it, so the images below it never end; "
                "remove the link"
            )
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                inside.append(f"{below}/{entry.name}")
            elif is_image(entry.name):
                found.append((f"{below}/{entry.name}", entry))
    yield found
    for folder in sorted(inside):
        yield from walk_images(root, folder, (*above, here))


def is_image(file: str) -> bool:
    """Tell by the name whether a file is an image; hidden files (``._x.jpg``) are not.

    >>> is_image("n01_1.JPEG"), is_image("._n01_1.JPEG"), is_image("notes.txt")
    (True, False, False)
    """
    return os.path.splitext(file)[1].lower() in IMAGE_SUFFIXES and not file.startswith(".")


def _numbered(path: Path) -> dict[str, str]:
    """Read lines of ``key value``."""
    entries = {}
    for number, line in enumerate(read_lines(path), start=1):
        key, _, value = line.strip().partition(" ")
        if not value:
            raise DataError(f"{path} line {number} is not 'number value': {line!r:.80}")
        entries[key] = value
    return entries


def _words(path: Path, wnids: Sequence[str]) -> list[str]:
    words = dict(line.split("\t", 1) for line in read_lines(path) if "\t" in line) if path.exists() else {}
    return [words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids]


def _inside(name: str, listed_in: Path) -> str:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\\" in name:
        raise DataError(f"{listed_in} names the image '{name}', which lies outside the dataset")
    return name
