"""CIFAR-10 and CIFAR-100, in their binary and their Python form.

Binary records are one label byte (CIFAR-10) or a coarse and a fine label byte (CIFAR-100), then 3,072
bytes of pixels: 32 x 32 red, then green, then blue. The files carry no header, so the number of records
is part of what is checked: a file cut at a record's end is damaged all the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.data.examples import Examples
from softtargets.data.files import read_all, read_lines
from softtargets.data.unpickle import restricted_loads
from softtargets.exceptions import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
# fmt: on


def cifar10_files(root: Path, split: str) -> list[Path]:
    """Return the files of a split, in order: the binary ones, or the Python ones where only they exist."""
    names = [f"data_batch_{i}" for i in range(1, 6)] if split == "train" else ["test_batch"]
    binary = [root / "cifar-10-batches-bin" / f"{name}.bin" for name in names]
    python = [root / "cifar-10-batches-py" / name for name in names]
    return python if not binary[0].exists() and python[0].exists() else binary


def read_cifar10(files: list[Path]) -> Examples:
    """Read CIFAR-10 batches, binary (``.bin``) or pickled, into one set of examples."""
    import numpy as np

    if files[0].suffix == ".bin":
        read = [read_binary(path, 1, CIFAR10_BATCH) for path in files]
        batches = [(labels[0], images) for labels, images in read]
        classes = _names_from_text(files[0].with_name("batches.meta.txt"), CIFAR10_CLASSES)
    else:
        batches = [(labels[0], images) for labels, images in (read_python(p, ("labels",)) for p in files)]
        for path, (labels, _) in zip(files, batches, strict=True):
            _check_count(path, len(labels), CIFAR10_BATCH)
        classes = _names_from_pickle(files[0].with_name("batches.meta"), "label_names", CIFAR10_CLASSES)
    return Examples(
        np.concatenate([images for _, images in batches]),
        np.concatenate([labels for labels, _ in batches]),
        classes,
    )


def cifar100_file(root: Path, split: str) -> Path:
    """Return the file of a split: the binary one, or the Python one where only that exists."""
    binary = root / "cifar-100-binary" / f"{split}.bin"
    python = root / "cifar-100-python" / split
    return python if not binary.exists() and python.exists() else binary


def read_cifar100(path: Path, split: str, *, coarse: bool = False) -> Examples:
    """Read CIFAR-100's train or test file, binary (``.bin``) or pickled, with fine or coarse labels."""
    kind = "coarse" if coarse else "fine"
    built_in = CIFAR100_COARSE if coarse else CIFAR100_FINE
    if path.suffix == ".bin":
        labels, images = read_binary(path, 2, CIFAR100_RECORDS[split])
        classes = _names_from_text(path.with_name(f"{kind}_label_names.txt"), built_in)
    else:
        labels, images = read_python(path, ("coarse_labels", "fine_labels"))
        _check_count(path, len(images), CIFAR100_RECORDS[split])
        classes = _names_from_pickle(path.with_name("meta"), f"{kind}_label_names", built_in)
    return Examples(images, labels[0 if coarse else 1], classes)


def read_binary(
    path: Path, label_bytes: int, records: int
) -> tuple[list[NDArray[np.int64]], NDArray[np.uint8]]:
    """Return each of the record's labels as an array, and the images; `records` must be there exactly."""
    import numpy as np

    data = read_all(path)
    width = label_bytes + PIXELS
    if len(data) != records * width:
        raise DataError(
            f"{path} has {len(data)} bytes, expected {records * width} ({records} records of {width}); "
            f"the file is damaged"
        )
    table = np.frombuffer(data, np.uint8).reshape(records, width)
    labels = [table[:, i].astype(np.int64) for i in range(label_bytes)]
    return labels, np.ascontiguousarray(table[:, label_bytes:]).reshape(records, 3, 32, 32)


def read_python(path: Path, keys: tuple[str, ...]) -> tuple[list[NDArray[np.int64]], NDArray[np.uint8]]:
    """Return each named label list as an array, and the images, from a pickled batch."""
    import numpy as np

    batch = _pickled_dictionary(path)
    images = batch.get("data")
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (PIXELS,):
        raise DataError(f"{path} has no array 'data' of {PIXELS} bytes an image; it is not a CIFAR batch")
    labels = []
    for key in keys:
        values = batch.get(key)
        if not isinstance(values, (list, np.ndarray)) or len(values) != len(images):
            raise DataError(f"{path} has no list '{key}' with one label for each of its {len(images)} images")
        if not all(isinstance(value, (int, np.integer)) for value in values):
            raise DataError(f"{path} has labels in '{key}' that are not whole numbers")
        labels.append(np.array(values, np.int64))
    return labels, np.ascontiguousarray(images).reshape(-1, 3, 32, 32)


def read_names(path: Path, key: str) -> tuple[str, ...]:
    """Return the class names under `key` in a pickled ``meta`` or ``batches.meta``."""
    names = _pickled_dictionary(path).get(key)
    if not isinstance(names, list) or not all(isinstance(name, (str, bytes)) for name in names):
        raise DataError(f"{path} has no list of names '{key}'")
    return tuple(name.decode("latin1") if isinstance(name, bytes) else name for name in names)


def _pickled_dictionary(path: Path) -> dict[str, Any]:
    value = restricted_loads(read_all(path), str(path))
    if not isinstance(value, dict):
        raise DataError(f"{path} holds a {type(value).__name__}, expected a dictionary")
    # Written by Python 2, the keys come as bytes; re-written by Python 3, as text.
    return {key.decode("latin1") if isinstance(key, bytes) else str(key): item for key, item in value.items()}


def _names_from_text(path: Path, built_in: tuple[str, ...]) -> tuple[str, ...]:
    if not path.exists():
        return built_in
    return _checked_names(path, tuple(line.strip() for line in read_lines(path) if line.strip()), built_in)


def _names_from_pickle(path: Path, key: str, built_in: tuple[str, ...]) -> tuple[str, ...]:
    return _checked_names(path, read_names(path, key), built_in) if path.exists() else built_in


def _checked_names(path: Path, names: tuple[str, ...], built_in: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) != len(built_in):
        raise DataError(f"{path} names {len(names)} classes, expected {len(built_in)}; it is damaged")
    return names


def _check_count(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DataError(f"{path} has {found} images, expected {expected}; the file is damaged")
