"""Arrays of one's own as a dataset: images and labels from .npz or .npy, and a file that says which they are."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data.digits import held_out
from softtargets.data.directory import data_directory
from softtargets.data.examples import Examples
from softtargets.data.ordering import dealt_out
from softtargets.exceptions import DataError, nearest
from softtargets.storage import make_directory, storage_errors, write_atomically

# What images and labels of a split may be called, the usual names first.
NAMES = {
    "train": (("images", "labels"), ("train_images", "train_labels"), ("x_train", "y_train"), ("x", "y")),
    "test": (("test_images", "test_labels"), ("x_test", "y_test")),
}
SHARE_HELD_OUT = 1 / 6  # as of MNIST, where no test set is given
FEWEST = 12  # examples of which some can be held out
CHANNELS = (1, 3, 4)


def read_own_arrays(
    path: Path, labels: Path | None = None, test: Path | None = None, test_labels: Path | None = None
) -> dict[str, Examples]:
    """Images and labels of a .npz file, or of .npy files of each; `test` is a second file of the same form.

    In a .npz they are called ``images`` and ``labels``, and ``test_images`` and ``test_labels`` (or ``x_train``,
    ``y_train``, ``x_test``, ``y_test``; ``x``, ``y``). Images are (N, height, width), with the channels first or last,
    of uint8, or of floating-point numbers from 0 to 1, which are multiplied by 255 and rounded. Labels are whole
    numbers or texts. Without a test set a sixth of the examples is held out, of each class its share, by a hash of
    their places. Nothing in a file is executed.
    """
    found = {"train": _pair(path, labels, "train")}
    if test is not None:
        found["test"] = _pair(test, test_labels, "train")
    elif (second := _pair(path, None, "test", needed=False)) is not None:
        found["test"] = second
    names = _class_names([y for _, y in found.values()])
    splits = {
        split: Examples(_as_images(x, split), _codes(y, names), tuple(map(str, names)))
        for split, (x, y) in found.items()
    }
    if "test" in splits and splits["test"].images.shape[1:] != splits["train"].images.shape[1:]:
        raise DataError(
            f"test images have the shape {splits['test'].images.shape[1:]}, but training images have "
            f"{splits['train'].images.shape[1:]}; all must have the same shape"
        )
    if "test" not in splits:
        return _cut(splits["train"])
    known = np.unique(splits["train"].labels)
    if unknown := sorted(set(splits["test"].labels.tolist()) - set(known.tolist())):
        name = str(names[unknown[0]])
        meant = nearest(name, map(str, names[known])) if names.dtype.kind == "U" else ""
        raise DataError(
            f"{name} is a class of the test set that the training set does not have{meant}, so no model can learn "
            "it; leave its examples out, or add some to the training set"
        )
    return splits


def keep_arrays(splits: Mapping[str, Examples], data_dir: Path | None = None) -> tuple[str, str]:
    """Write a dataset into the data directory, and return what a recipe calls it: the name of its file and its digest.

    The same examples have the same name, whoever has them. What is there already stays.
    """
    digest = arrays_digest(splits)
    name = f"arrays-{digest}.npz"
    path = data_directory(data_dir) / name
    if not path.exists():
        make_directory(path.parent)
        content = io.BytesIO()
        stored: Any = _stored(splits)
        np.savez(content, **stored)
        write_atomically(path, content.getvalue())
    return name, digest


def load_arrays(root: Path, name: str, digest: str, split: str) -> Examples:
    """The ``train`` or ``test`` examples of a dataset that `keep_arrays` wrote; refused if they are others."""
    path = root / name
    if not path.is_file():
        raise DataError(
            f"there are no arrays {name} in {root}; softtargets data arrays FILE makes a dataset of a .npz or .npy file"
        )
    splits = _restored(path)
    found = arrays_digest(splits)
    if digest and found != digest:
        raise DataError(
            f"the arrays in {path} are not those of the recipe: their digest is {found}, not {digest}; put the right "
            f"arrays back, or set data.digest: '{found}' in the recipe, which makes it a different recipe"
        )
    return splits[split]


def arrays_digest(splits: Mapping[str, Examples]) -> str:
    """Sixteen hexadecimal digits that say which examples these are, whatever their file is called.

    >>> one = Examples(np.zeros((2, 1, 8, 8), np.uint8), np.array([1, 0]), ("cat", "dog"))
    >>> arrays_digest({"train": one, "test": one})
    'bc68f0d889ab357f'
    """
    found = hashlib.sha256()
    for name in sorted(splits):
        one = splits[name]
        found.update(f"{name} {one.images.shape} {list(one.classes)}\n".encode())
        found.update(one.images.tobytes())
        found.update(one.labels.astype("<i8").tobytes())
    return found.hexdigest()[:16]


def _pair(path: Path, labels: Path | None, split: str, needed: bool = True) -> Any:
    arrays = _arrays(path)
    if not isinstance(arrays, dict):
        if not needed:
            return None
        if labels is None:
            raise DataError(
                f"{path} has only one array; also give the file with its labels, or give a .npz with images and "
                "labels"
            )
        of_labels = _arrays(labels)
        if isinstance(of_labels, dict):
            raise DataError(f"{labels} has several arrays; give a .npy file of labels")
        return arrays, of_labels
    for image_name, label_name in NAMES[split]:
        if image_name in arrays and label_name in arrays:
            return arrays[image_name], arrays[label_name]
    if not needed:
        return None
    wanted = " or ".join(f"{one} and {other}" for one, other in NAMES[split])
    raise DataError(f"{path} has {', '.join(sorted(arrays)) or 'nothing'}; it should have {wanted}")


def _arrays(path: Path) -> Any:
    """All arrays of a .npz by name, or the one of a .npy; objects, which would have to be unpickled, are refused."""
    try:
        with storage_errors(path, "read"):
            read = np.load(path, allow_pickle=False)
            return {name: read[name] for name in read.files} if hasattr(read, "files") else read
    except (ValueError, EOFError, KeyError) as error:
        why = "it holds Python objects, which are not read" if "pickle" in str(error) else f"{error}"
        raise DataError(f"{path} cannot be read as .npz or .npy: {why}") from None
    except Exception as error:
        if type(error).__name__ in ("BadZipFile", "error"):
            raise DataError(f"{path} cannot be read as .npz or .npy: it is damaged ({error})") from None
        raise


def _as_images(values: NDArray[Any], split: str) -> NDArray[np.uint8]:
    found = values
    if found.ndim == 3:
        found = found[:, None]
    elif found.ndim == 4 and found.shape[1] not in CHANNELS and found.shape[3] in CHANNELS:
        found = found.transpose(0, 3, 1, 2)
    if found.ndim != 4 or found.shape[1] not in CHANNELS or 0 in found.shape:
        raise DataError(
            f"{split} images have the shape {values.shape}; it must be (N, height, width), or have 1, 3 or 4 "
            "channels first or last"
        )
    if found.dtype.kind == "f":
        low, high = float(np.min(found)), float(np.max(found))
        if not (low >= 0 and high <= 1):  # NaN is neither
            raise DataError(
                f"{split} images have values from {low:g} to {high:g}; give uint8 from 0 to 255, or numbers from 0 "
                "to 1. Do not standardise them: the recipe does that"
            )
        found = np.rint(found * 255).astype(np.uint8)
    elif found.dtype.kind in "iu":
        if found.min() < 0 or found.max() > 255:
            raise DataError(
                f"{split} images have values from {found.min()} to {found.max()}; values must be from 0 to 255"
            )
        found = found.astype(np.uint8)
    else:
        raise DataError(f"{split} images are {found.dtype}; give uint8")
    return np.ascontiguousarray(found)


def _class_names(labels: list[NDArray[Any]]) -> NDArray[Any]:
    for one in labels:
        if one.ndim != 1 or len(one) == 0 or one.dtype.kind not in "iuU":
            raise DataError(
                f"labels are {one.dtype} of shape {one.shape}; give one whole number or text for each image"
            )
    if len({one.dtype.kind == "U" for one in labels}) > 1:
        raise DataError(
            "labels are numbers in one of training and test set and texts in the other; use the same kind in both"
        )
    return np.unique(np.concatenate(labels))


def _codes(labels: NDArray[Any], names: NDArray[Any]) -> NDArray[np.int64]:
    return np.searchsorted(names, labels).astype(np.int64)


def _cut(whole: Examples) -> dict[str, Examples]:
    if len(whole) < FEWEST:
        raise DataError(
            f"{len(whole)} examples are too few to hold some out as a test set; give a test set of your own"
        )
    test = held_out(whole.labels.tolist(), max(1, round(SHARE_HELD_OUT * len(whole))))
    rest = whole.take(sorted(set(range(len(whole))) - set(test)))
    return {
        "train": rest.take(dealt_out(rest.labels.tolist(), "softtargets arrays order")),
        "test": whole.take(test),
    }


def _stored(splits: Mapping[str, Examples]) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {"classes": np.array(splits["train"].classes)}
    for name, one in splits.items():
        found |= {f"{name}_images": one.images, f"{name}_labels": one.labels}
    return found


def _restored(path: Path) -> dict[str, Examples]:
    arrays = _arrays(path)
    try:
        names = tuple(map(str, arrays["classes"].tolist()))
        return {
            split: Examples(arrays[f"{split}_images"], arrays[f"{split}_labels"], names)
            for split in ("train", "test")
        }
    except (KeyError, TypeError, IndexError, AttributeError):
        raise DataError(
            f"{path} was not written by softtargets data arrays; make a dataset from your arrays with that command"
        ) from None
