"""Load a dataset by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.data import cifar, cifar_n, folders, text
from softtargets.data.catalogue import CATALOGUE, find_source
from softtargets.data.digits import read_digits
from softtargets.data.directory import data_directory
from softtargets.data.examples import Examples
from softtargets.data.human import HumanLabels
from softtargets.data.idx import read_idx
from softtargets.data.ordering import dealt_out
from softtargets.data.progress import Progress
from softtargets.exceptions import DataError, nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SPLITS = ("train", "test")
EMNIST_CLASSES = {
    "balanced": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",
    "byclass": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "bymerge": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "digits": "0123456789",
    "mnist": "0123456789",
}
FASHION_CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
CIFAR10_LABELS = {
    "clean": "clean_label",
    "aggregate": "aggre_label",
    "worse": "worse_label",
    "random1": "random_label1",
    "random2": "random_label2",
    "random3": "random_label3",
}
CIFAR100_LABELS = {"clean": "clean_label", "noisy": "noisy_label"}
# By dataset and name: the arrays of the noisy and of the clean labels.
HUMAN_LABELS = {
    "cifar10": {name: (key, "clean_label") for name, key in CIFAR10_LABELS.items() if name != "clean"},
    "cifar100": {
        "noisy": ("noisy_label", "clean_label"),
        "noisy-coarse": ("noisy_coarse_label", "clean_coarse_label"),
    },
}


def load(
    name: str,
    split: str,
    data_dir: Path | str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Examples:
    """Return the ``train`` or ``test`` examples of an image dataset.

    Options, by dataset: emnist ``part="balanced"``; cifar10 ``labels="clean"`` (or aggregate, worse,
    random1, random2, random3); cifar100 ``labels="clean"`` (or noisy) and ``coarse=False``; cub200,
    tiny-imagenet, imagenet and image-folder ``size``. Human labels are for the train split; test labels
    are always clean. The test split of tiny-imagenet and imagenet is their labelled validation set. For
    ``image-folder``, `data_dir` is the directory that holds ``train`` and ``test`` (or ``val``).

    >>> digits = load("digits", "test")
    >>> len(digits), digits.images.shape[1:], len(digits.classes)
    (500, (1, 8, 8), 10)
    """
    reader = READERS.get(name)
    if reader is None:
        raise DataError(_no_reader(name))
    if split not in SPLITS:
        raise DataError(f"{name} has no split '{split}'; there are train and test")
    allowed = [
        parameter.name
        for parameter in inspect.signature(reader).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for option in options:
        if option not in allowed:
            choice = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise DataError(f"{name} has no option '{option}'{nearest(option, allowed)}; {choice}")
    root = data_directory(data_dir)
    with _remedied(name, root):
        return reader(root, split, progress, **options)


def load_pairs(
    name: str, source: str, target: str, part: str = "train", data_dir: Path | str | None = None
) -> text.Pairs:
    """Return sentence pairs of ``multi30k``, or of aligned files of your own with ``parallel-text``.

    For ``parallel-text``, `data_dir` holds ``part.source`` and ``part.target`` (plain or ``.gz``), or a
    table ``part.source-target.tsv``.
    """
    root = data_directory(data_dir)
    if name == "parallel-text":
        return text.parallel_files(root, source, target, part)
    if name != "multi30k":
        known = ("multi30k", "parallel-text")
        raise DataError(
            f"there is no parallel text '{name}'{nearest(name, known)}; known: {', '.join(known)}"
        )
    files = text.multi30k_files(root, source, target, part)
    for path in files:
        _require(path, name, root)
    with _remedied(name, root):
        return text.read_parallel(*files)


def load_human_labels(name: str, labels: str, data_dir: Path | str | None = None) -> HumanLabels:
    """Return labels that people gave to training images, with the clean ones beside them; no image is read.

    ``cifar10`` has aggregate, worse, random1, random2 and random3; ``cifar100`` has noisy and noisy-coarse.
    """
    if name not in HUMAN_LABELS:
        raise DataError(
            f"there are no human labels of '{name}'{nearest(name, HUMAN_LABELS)}; there are of "
            f"{', '.join(HUMAN_LABELS)}"
        )
    keys = HUMAN_LABELS[name]
    if labels not in keys:
        raise DataError(
            f"{name} has no human labels '{labels}'{nearest(labels, keys)}; there are {', '.join(keys)}"
        )
    noisy, clean = keys[labels]
    root = data_directory(data_dir)
    with _remedied(f"{name}n", root):
        _, human = _human(root, f"{name}n")
    classes = {"cifar10": 10, "cifar100": 20 if labels == "noisy-coarse" else 100}[name]
    return HumanLabels(human[clean], human[noisy], classes)


@contextmanager
def _remedied(name: str, root: Path) -> Iterator[None]:
    """Add the command that fetches a dataset to what is wrong with its files."""
    try:
        yield
    except DataError as problem:
        remedy = find_source(name).remedy(root) if name in CATALOGUE else ""
        if remedy and remedy not in str(problem):
            raise DataError(f"{problem}; {remedy}") from None
        raise


def _no_reader(name: str) -> str:
    if name in ("cifar10n", "cifar100n"):
        images = name.removesuffix("n")
        example = "worse" if name == "cifar10n" else "noisy"
        return f"{name} holds labels, not images; load '{images}' with the option labels='{example}' instead"
    if name in ("multi30k", "parallel-text"):
        return f"{name} holds sentence pairs, not images; use load_pairs"
    return f"there is no dataset '{name}'{nearest(name, READERS)}; known: {', '.join(READERS)}"


def _require(path: Path, name: str, root: Path) -> None:
    if not path.exists():
        source = find_source(name)
        raise DataError(f"{source.title} is missing '{path.name}' in {path.parent}; {source.remedy(root)}")


def _digits(root: Path, split: str, progress: Progress | None) -> Examples:
    return read_digits(split)


def _idx_pair(name: str, root: Path, folder: str, stem: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    import numpy as np

    images_file = text.plain_or_gz(root / folder / f"{stem}-images-idx3-ubyte.gz")
    labels_file = text.plain_or_gz(root / folder / f"{stem}-labels-idx1-ubyte.gz")
    for path in (images_file, labels_file):
        _require(path, name, root)
    images, labels = read_idx(images_file), read_idx(labels_file)
    if images.dtype != np.uint8 or images.ndim != 3:
        raise DataError(f"{images_file} holds {images.dtype} of shape {images.shape}, expected grey images")
    if labels.dtype != np.uint8 or labels.ndim != 1:
        raise DataError(f"{labels_file} holds {labels.dtype} of shape {labels.shape}, expected labels")
    if len(images) != len(labels):
        raise DataError(f"{images_file} has {len(images)} images but {labels_file} has {len(labels)} labels")
    return images[:, None], labels.astype(np.int64)


def _mnist(root: Path, split: str, progress: Progress | None) -> Examples:
    images, labels = _idx_pair("mnist", root, "MNIST/raw", "train" if split == "train" else "t10k")
    return Examples(images, labels, tuple("0123456789"))


def _fashion_mnist(root: Path, split: str, progress: Progress | None) -> Examples:
    stem = "train" if split == "train" else "t10k"
    images, labels = _idx_pair("fashion-mnist", root, "FashionMNIST/raw", stem)
    return Examples(images, labels, FASHION_CLASSES)


def _emnist(root: Path, split: str, progress: Progress | None, *, part: str = "balanced") -> Examples:
    import numpy as np

    if part not in EMNIST_CLASSES:
        raise DataError(
            f"emnist has no part '{part}'{nearest(part, EMNIST_CLASSES)}; "
            f"there are {', '.join(EMNIST_CLASSES)}"
        )
    images, labels = _idx_pair("emnist", root, "EMNIST/raw", f"emnist-{part}-{split}")
    # The publishers stored rows as columns; the letters alone count from 1.
    upright = np.ascontiguousarray(images.transpose(0, 1, 3, 2))
    return Examples(upright, labels - 1 if part == "letters" else labels, tuple(EMNIST_CLASSES[part]))


def _cifar10(root: Path, split: str, progress: Progress | None, *, labels: str = "clean") -> Examples:
    key = _label_key("cifar10", labels, CIFAR10_LABELS)
    files = cifar.cifar10_files(root, split)
    for path in files:
        _require(path, "cifar10", root)
    examples = cifar.read_cifar10(files)
    if split == "test" or labels == "clean":
        return examples
    return _relabel(examples, root, "cifar10n", key, "clean_label")


def _cifar100(
    root: Path, split: str, progress: Progress | None, *, labels: str = "clean", coarse: bool = False
) -> Examples:
    key = _label_key("cifar100", labels, CIFAR100_LABELS)
    path = cifar.cifar100_file(root, split)
    _require(path, "cifar100", root)
    examples = cifar.read_cifar100(path, split, coarse=coarse)
    if split == "test" or labels == "clean":
        return examples
    if coarse:
        return _relabel(examples, root, "cifar100n", "noisy_coarse_label", "clean_coarse_label")
    return _relabel(examples, root, "cifar100n", key, "clean_label")


def _label_key(name: str, labels: str, keys: dict[str, str]) -> str:
    if labels not in keys:
        raise DataError(
            f"{name} has no labels '{labels}'{nearest(labels, keys)}; there are {', '.join(keys)}"
        )
    return keys[labels]


def _relabel(examples: Examples, root: Path, name: str, key: str, clean_key: str) -> Examples:
    """Replace the labels by people's, once those are known to be in the order of these images."""
    import numpy as np

    path, human = _human(root, name)
    if not np.array_equal(human[clean_key], examples.labels):
        raise DataError(
            f"the clean labels in {path} are not those of the images in {root}, so the human labels cannot "
            f"be matched to the images; check those with: softtargets data verify {name.removesuffix('n')}"
        )
    return Examples(examples.images, human[key], examples.classes)


def _human(root: Path, name: str) -> tuple[Path, dict[str, NDArray[np.int64]]]:
    """The file of CIFAR-N's labels, and what it holds."""
    path = cifar_n.human_labels_file(root, name)
    if path is None:
        _require(root / cifar_n.FILES[name][0], name, root)
        raise AssertionError("unreachable: _require raises for a file that does not exist")
    return path, cifar_n.read_human_labels(path, name)


def _cub200(root: Path, split: str, progress: Progress | None, *, size: int = 224) -> Examples:
    folder = root / "CUB_200_2011"
    for name in ("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt"):
        _require(folder / name, "cub200", root)
    return _decoded(folders.cub200(folder, split), split, size, progress)


def _tiny_imagenet(root: Path, split: str, progress: Progress | None, *, size: int = 64) -> Examples:
    folder = root / "tiny-imagenet-200"
    _require(folder / "wnids.txt", "tiny-imagenet", root)
    _require(folder / ("train" if split == "train" else "val/val_annotations.txt"), "tiny-imagenet", root)
    return _decoded(folders.tiny_imagenet(folder, split), split, size, progress)


def _imagenet(root: Path, split: str, progress: Progress | None, *, size: int = 224) -> Examples:
    folder = root / "imagenet"
    _require(folder / ("train" if split == "train" else "val"), "imagenet", root)
    return _decoded(folders.imagenet(folder, split), split, size, progress)


def _image_folder(root: Path, split: str, progress: Progress | None, *, size: int = 64) -> Examples:
    train = root / "train"
    if split == "train":
        return _decoded(folders.image_folder(train), split, size, progress)
    held_out = root / "val" if (root / "val").is_dir() and not (root / "test").is_dir() else root / "test"
    classes = folders.class_directories(train) if train.is_dir() else None
    return folders.decode(folders.image_folder(held_out, classes), size, progress)


def _decoded(index: folders.ImageIndex, split: str, size: int, progress: Progress | None) -> Examples:
    """Decode images; training ones dealt out class by class, since directories list them class after class."""
    if split == "train":
        order = dealt_out([int(label) for label in index.labels], "softtargets folders order")
        index = index.take(order)
    return folders.decode(index, size, progress)


READERS: dict[str, Callable[..., Examples]] = {
    "digits": _digits,
    "mnist": _mnist,
    "fashion-mnist": _fashion_mnist,
    "emnist": _emnist,
    "cifar10": _cifar10,
    "cifar100": _cifar100,
    "cub200": _cub200,
    "tiny-imagenet": _tiny_imagenet,
    "imagenet": _imagenet,
    "image-folder": _image_folder,
}
