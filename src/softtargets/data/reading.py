"""Load a dataset by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data import cifar, cifar_n, folders, own_images, text
from softtargets.data.catalogue import find_source, remedied
from softtargets.data.corpora import CORPORA
from softtargets.data.decoding import Decoding
from softtargets.data.digits import read_digits
from softtargets.data.directory import data_directory
from softtargets.data.examples import Examples
from softtargets.data.idx import read_idx
from softtargets.data.ordering import dealt_out
from softtargets.data.own_arrays import load_arrays
from softtargets.data.progress import Progress
from softtargets.data.source import one_of
from softtargets.exceptions import DataError, nearest

SPLITS = ("train", "test")
MNIST_EXAMPLES = {"train": 60_000, "test": 10_000}
EMNIST_CLASSES = {
    "balanced": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",
    "byclass": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    "bymerge": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabdefghnqrt",
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "digits": "0123456789",
    "mnist": "0123456789",
}
# fmt: off
FASHION_CLASSES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)
# fmt: on
# By dataset and name: the arrays of the noisy and of the clean labels.
HUMAN_LABELS = {
    "cifar10": {
        "aggregate": ("aggre_label", "clean_label"),
        "worse": ("worse_label", "clean_label"),
        "random1": ("random_label1", "clean_label"),
        "random2": ("random_label2", "clean_label"),
        "random3": ("random_label3", "clean_label"),
    },
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

    Options, by dataset: emnist ``part="balanced"``; cifar10 ``labels="clean"`` (or aggregate, worse, random1,
    random2, random3); cifar100 ``labels="clean"`` (or noisy) and ``coarse=False``; cub200, tiny-imagenet, imagenet
    and image-folder those of `Decoding`: ``size``, ``keep``, ``draft``, ``upright``. Human labels are for the train
    split; test labels are always clean. The test split of tiny-imagenet and imagenet is their labelled validation
    set. For ``image-folder``, `data_dir` is the directory that holds ``train`` and ``test`` (or ``val``), or has it
    under the name ``folder``; with a ``digest`` its images must be those (`softtargets data folder`).

    >>> digits = load("digits", "test")
    >>> len(digits), digits.images.shape[1:], len(digits.classes)
    (500, (1, 8, 8), 10)
    """
    if name in NOT_IMAGES:
        raise DataError(f"{name} holds {NOT_IMAGES[name]}")
    one_of(name, (*READERS, *INDICES), "there is no dataset", "known:")
    root = data_directory(data_dir)
    if (files := image_files(name, split, data_dir, progress=progress, **options)) is not None:
        with remedied(name, root):
            return folders.decode(*files, progress)
    reader = READERS[name]
    _check(name, split, options, inspect.getfullargspec(reader).kwonlyargs)
    with remedied(name, root):
        return reader(root, split, progress, **options)


def load_human_labels(name: str, labels: str, data_dir: Path | str | None = None) -> cifar_n.HumanLabels:
    """Return labels that people gave to training images, with the clean ones beside them; no image is read.

    ``cifar10`` has aggregate, worse, random1, random2 and random3; ``cifar100`` has noisy and noisy-coarse.
    """
    one_of(name, HUMAN_LABELS, "there are no human labels of", "there are of")
    one_of(labels, HUMAN_LABELS[name], f"{name} has no human labels")
    noisy, clean = HUMAN_LABELS[name][labels]
    root = data_directory(data_dir)
    with remedied(f"{name}n", root):
        _, human = _human(root, f"{name}n")
    classes = {"cifar10": 10, "cifar100": 20 if labels == "noisy-coarse" else 100}[name]
    return cifar_n.HumanLabels(human[clean], human[noisy], classes)


def _digits(root: Path, split: str, progress: Progress | None) -> Examples:
    return read_digits(split)


def _idx_pair(name: str, root: Path, folder: str, stem: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    files = [
        text.plain_or_gz(root / folder / f"{stem}-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1")
    ]
    find_source(name).require(root, *files)
    images, labels = map(read_idx, files)
    for path, array, dimensions, what in zip(
        files, (images, labels), (3, 1), ("grey images", "labels"), strict=True
    ):
        if array.dtype != np.uint8 or array.ndim != dimensions:
            raise DataError(f"{path} holds {array.dtype} of shape {array.shape}, expected {what}")
    if len(images) != len(labels):
        raise DataError(f"{files[0]} has {len(images)} images but {files[1]} has {len(labels)} labels")
    return images[:, None], labels.astype(np.int64)


def _mnist(
    name: str, folder: str, classes: Sequence[str], root: Path, split: str, progress: Progress | None
) -> Examples:
    """MNIST, and what comes in its form."""
    stem = "train" if split == "train" else "t10k"
    found = Examples(*_idx_pair(name, root, folder, stem), tuple(classes))
    if len(found) != MNIST_EXAMPLES[split]:
        # A recipe names its data and not how much of it there is: runs of a part would have the same identity.
        raise DataError(
            f"{root / folder} has {len(found)} {split} images, but {name} has {MNIST_EXAMPLES[split]}; to use fewer "
            "images, set data.limit in the recipe, and for your own images use image-folder"
        )
    return found


def _emnist(root: Path, split: str, progress: Progress | None, *, part: str = "balanced") -> Examples:
    one_of(part, EMNIST_CLASSES, "emnist has no part")
    images, labels = _idx_pair("emnist", root, "EMNIST/raw", f"emnist-{part}-{split}")
    # The publishers stored rows as columns; the letters alone count from 1.
    upright = np.ascontiguousarray(images.transpose(0, 1, 3, 2))
    return Examples(upright, labels - 1 if part == "letters" else labels, tuple(EMNIST_CLASSES[part]))


def _cifar10(root: Path, split: str, progress: Progress | None, *, labels: str = "clean") -> Examples:
    one_of(labels, ("clean", *HUMAN_LABELS["cifar10"]), "cifar10 has no labels")
    files = cifar.cifar10_files(root, split)
    find_source("cifar10").require(root, *files)
    return _relabelled(cifar.read_cifar10(files), root, split, "cifar10", labels)


def _cifar100(
    root: Path, split: str, progress: Progress | None, *, labels: str = "clean", coarse: bool = False
) -> Examples:
    one_of(labels, ("clean", "noisy"), "cifar100 has no labels")
    files = cifar.cifar100_files(root, split)
    find_source("cifar100").require(root, *files)
    examples = cifar.read_cifar100(files, split, coarse=coarse)
    wanted = "noisy-coarse" if coarse and labels == "noisy" else labels
    return _relabelled(examples, root, split, "cifar100", wanted)


def _relabelled(examples: Examples, root: Path, split: str, name: str, labels: str) -> Examples:
    """With people's labels in training, once those are known to be in the order of these images."""
    if split == "test" or labels == "clean":
        return examples
    noisy, clean = HUMAN_LABELS[name][labels]
    path, human = _human(root, f"{name}n")
    if not np.array_equal(human[clean], examples.labels):
        raise DataError(
            f"the clean labels in {path} differ from those of the images in {root}, so the human labels cannot be "
            f"matched to the images; check the images with: softtargets data verify {name}"
        )
    return Examples(examples.images, human[noisy], examples.classes)


def _human(root: Path, name: str) -> tuple[Path, dict[str, NDArray[np.int64]]]:
    """The file of CIFAR-N's labels, the published one first, and what it holds."""
    files = [root / file for file in cifar_n.FILES[name]]
    path = next((file for file in files if file.exists()), files[0])
    find_source(name).require(root, path)
    return path, cifar_n.read_human_labels(path, name)


def _listed(
    name: str, root: Path, split: str, progress: Progress | None, **options: Any
) -> folders.ImageIndex:
    """One of the datasets of image files."""
    folder, index, needed = LISTED[name]
    find_source(name).require(root, *(root / folder / file for file in needed[split]))
    return index(root / folder, split)


def _image_folder(
    root: Path, split: str, progress: Progress | None, *, folder: str = "", digest: str = "", **options: Any
) -> folders.ImageIndex:
    """Any folder: `root` itself, or a directory of that name in it; with a digest it must hold those images."""
    root = root / folder
    if digest:
        own_images.check_digest(root, digest, progress)
    held_out = "val" if (root / "val").is_dir() and not (root / "test").is_dir() else "test"
    return folders.split_folder(root, split, held_out)


def _own_arrays(
    root: Path, split: str, progress: Progress | None, *, arrays: str, digest: str = ""
) -> Examples:
    return load_arrays(root, arrays, digest, split)


def image_files(
    name: str,
    split: str,
    data_dir: Path | str | None = None,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[folders.ImageIndex, Decoding] | None:
    """Where the ``train`` or ``test`` images of a dataset are and how they are decoded; None if it has no image files.

    What `load` decodes at once, in the same order: training images are dealt out class by class, since directories list
    them class after class.
    """
    if name not in INDICES:
        return None
    _check(name, split, options, (*OPTIONS, *FOLDER_OPTIONS) if name == "image-folder" else OPTIONS)
    how = Decoding(**{"size": SIZES[name]} | {key: options[key] for key in OPTIONS if key in options})
    root = data_directory(data_dir)
    with remedied(name, root):
        index = INDICES[name](root, split, progress, **options)
    if split == "train":
        index = index.take(dealt_out(index.labels.tolist(), "softtargets folders order"))
    return index, how


def _check(name: str, split: str, options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Refuse splits and options that a dataset does not have."""
    if split not in SPLITS:
        raise DataError(f"{name} has no split '{split}'; its splits are train and test")
    for option in options:
        if option not in allowed:
            choice = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise DataError(f"{name} has no option '{option}'{nearest(option, allowed)}; {choice}")


# What there is instead of images, and how to have it.
NOT_IMAGES = {
    "cifar10n": "labels, not images; load 'cifar10' with the option labels='worse' instead",
    "cifar100n": "labels, not images; load 'cifar100' with the option labels='noisy' instead",
    **dict.fromkeys((*CORPORA, "parallel-text"), "sentence pairs, not images; use load_pairs"),
}
# Of each dataset of image files its folder, what lists it, and what must be there for each split.
LISTED: dict[str, tuple[str, Callable[[Path, str], folders.ImageIndex], dict[str, Sequence[str]]]] = {
    "cub200": ("CUB_200_2011", folders.cub200, dict.fromkeys(SPLITS, folders.CUB200_LISTS)),
    "tiny-imagenet": (
        "tiny-imagenet-200",
        folders.tiny_imagenet,
        {"train": ("wnids.txt", "train"), "test": ("wnids.txt", "val/val_annotations.txt")},
    ),
    "imagenet": ("imagenet", folders.imagenet, {"train": ("train",), "test": ("val",)}),
}
READERS: dict[str, Callable[..., Examples]] = {
    "digits": _digits,
    "mnist": partial(_mnist, "mnist", "MNIST/raw", "0123456789"),
    "fashion-mnist": partial(_mnist, "fashion-mnist", "FashionMNIST/raw", FASHION_CLASSES),
    "emnist": _emnist,
    "cifar10": _cifar10,
    "cifar100": _cifar100,
    "arrays": _own_arrays,
}
# Of datasets that are image files what lists them, and the size that is kept unless told otherwise.
INDICES: dict[str, Callable[..., folders.ImageIndex]] = {
    **{name: partial(_listed, name) for name in LISTED},
    "image-folder": _image_folder,
}
SIZES = {"cub200": 224, "tiny-imagenet": 64, "imagenet": 224, "image-folder": 64}
OPTIONS = ("size", "keep", "draft", "upright")
FOLDER_OPTIONS = ("folder", "digest")
