"""CIFAR-10 and CIFAR-100, in their binary and their Python form.

Binary records are one label byte (CIFAR-10) or a coarse and a fine label byte (CIFAR-100), then 3,072
bytes of pixels: 32 x 32 red, then green, then blue. The files carry no header, so the number of records
is part of what is checked: a file cut at a record's end is damaged all the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softtargets.data.examples import Examples
from softtargets.data.files import read_all, read_lines
from softtargets.data.unpickle import read_dictionary
from softtargets.exceptions import DataError

PIXELS = 3 * 32 * 32
CIFAR10_BATCH = 10_000
CIFAR100_RECORDS = {"train": 50_000, "test": 10_000}

# fmt: off
CIFAR10_CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)
CIFAR100_COARSE = (
    "aquatic_mammals", "fish", "flowers", "food_containers", "fruit_and_vegetables",
    "household_electrical_devices", "household_furniture", "insects", "large_carnivores",
    "large_man-made_outdoor_things", "large_natural_outdoor_scenes", "large_omnivores_and_herbivores",
    "medium_mammals", "non-insect_invertebrates", "people", "reptiles", "small_mammals", "trees",
    "vehicles_1", "vehicles_2",
)
CIFAR100_FINE = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle",
    "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle",
    "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile", "cup",
    "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
    "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man",
    "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid",
    "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew",
    "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower",
    "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor", "train", "trout",
    "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman", "worm",
)
# Of each of these the place of its superclass among the coarse ones.
CIFAR100_SUPERCLASS = (
    4, 1, 14, 8, 0, 6, 7, 7, 18, 3, 3, 14, 9, 18, 7, 11, 3, 9, 7, 11, 6, 11, 5, 10, 7, 6, 13, 15, 3, 15, 0,
    11, 1, 10, 12, 14, 16, 9, 11, 5, 5, 19, 8, 8, 15, 13, 14, 17, 18, 10, 16, 4, 17, 4, 2, 0, 17, 4, 18, 17,
    10, 3, 2, 12, 12, 16, 12, 1, 9, 19, 2, 10, 0, 1, 16, 12, 9, 13, 15, 13, 16, 19, 2, 4, 6, 19, 5, 5, 8, 19,
    18, 1, 2, 15, 6, 0, 17, 8, 14, 13,
)
# fmt: on


def cifar10_files(root: Path, split: str) -> list[Path]:
    """Return the files of a split, in order: the binary ones, or the Python ones where only they exist."""
    names = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    return _files(root / "cifar-10-batches-bin", root / "cifar-10-batches-py", names)


def cifar100_files(root: Path, split: str) -> list[Path]:
    """Return the file of a split: the binary one, or the Python one where only that exists."""
    return _files(root / "cifar-100-binary", root / "cifar-100-python", [split])


def read_cifar10(files: list[Path]) -> Examples:
    """Read CIFAR-10 batches, binary (``.bin``) or pickled, into one set of examples."""
    names = ("batches.meta.txt", "batches.meta", "label_names")
    return _read(files, CIFAR10_BATCH, ("labels",), 0, names, CIFAR10_CLASSES)


def read_cifar100(files: list[Path], split: str, *, coarse: bool = False) -> Examples:
    """Read CIFAR-100's train or test file, binary (``.bin``) or pickled, with fine or coarse labels."""
    key = "coarse_label_names" if coarse else "fine_label_names"
    built_in = CIFAR100_COARSE if coarse else CIFAR100_FINE
    labels = ("coarse_labels", "fine_labels")
    return _read(
        files, CIFAR100_RECORDS[split], labels, 0 if coarse else 1, (f"{key}.txt", "meta", key), built_in
    )


def _files(binary: Path, python: Path, names: list[str]) -> list[Path]:
    first, instead = [binary / f"{name}.bin" for name in names], [python / name for name in names]
    return instead if not first[0].exists() and instead[0].exists() else first


def _read(
    files: list[Path],
    records: int,
    keys: tuple[str, ...],
    chosen: int,
    names: tuple[str, str, str],
    built_in: tuple[str, ...],
) -> Examples:
    """Files of so many records each, which have a label for every key, of which one is chosen.

    `names` are the text file of the classes' names, the pickled one, and the key in that.
    """
    binary = files[0].suffix == ".bin"
    read = [(read_binary if binary else read_python)(path, keys, records) for path in files]
    images, labels = [images for _, images in read], [labels[chosen] for labels, _ in read]
    text, pickled, key = names
    path, classes = files[0].with_name(text if binary else pickled), built_in
    if path.exists():
        classes = tuple(filter(None, map(str.strip, read_lines(path)))) if binary else read_names(path, key)
    if len(classes) != len(built_in):
        raise DataError(f"{path} names {len(classes)} classes, expected {len(built_in)}; it is damaged")
    return Examples(np.concatenate(images), np.concatenate(labels), classes)


def read_binary(
    path: Path, keys: tuple[str, ...], records: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.uint8]]:
    """Return each of the record's labels as an array, and the images; `records` must be there exactly."""
    data = read_all(path)
    label_bytes = len(keys)
    width = label_bytes + PIXELS
    if len(data) != records * width:
        raise DataError(
            f"{path} has {len(data)} bytes, expected {records * width} ({records} records of {width}); "
            f"the file is damaged"
        )
    table = np.frombuffer(data, np.uint8).reshape(records, width)
    labels = [table[:, i].astype(np.int64) for i in range(label_bytes)]
    return labels, np.ascontiguousarray(table[:, label_bytes:]).reshape(records, 3, 32, 32)


def read_python(
    path: Path, keys: tuple[str, ...], records: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.uint8]]:
    """Return each named label list as an array, and the images, from a pickled batch."""
    batch = read_dictionary(read_all(path), str(path))
    images = batch.get("data")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (PIXELS,):
        raise DataError(f"{path} has no array 'data' of {PIXELS} bytes an image; it is not a CIFAR batch")
    labels = []
    for key in keys:
        values = batch.get(key)
        if not isinstance(values, (list, np.ndarray)) or len(values) != len(images):
            raise DataError(f"{path} has no list '{key}' with one label for each of its {len(images)} images")
        if not all(isinstance(value, (int, np.integer)) and 0 <= value < 256 for value in values):
            raise DataError(f"{path} has labels in '{key}' that are not whole numbers from 0 to 255")
        labels.append(np.array(values, np.int64))
    if len(images) != records:
        raise DataError(f"{path} has {len(images)} images, expected {records}; the file is damaged")
    return labels, np.ascontiguousarray(images).reshape(-1, 3, 32, 32)


def read_names(path: Path, key: str) -> tuple[str, ...]:
    """Return the class names under `key` in a pickled ``meta`` or ``batches.meta``."""
    names = read_dictionary(read_all(path), str(path)).get(key)
    if not isinstance(names, list) or not all(isinstance(name, (str, bytes)) for name in names):
        raise DataError(f"{path} has no list of names '{key}'")
    return tuple(name.decode("latin1") if isinstance(name, bytes) else name for name in names)
