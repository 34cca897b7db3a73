"""CIFAR-10N and CIFAR-100N: labels that people gave to the CIFAR training images.

They come as ``.pt`` (a zip whose ``data.pkl`` is a pickled dictionary of arrays; read without torch and
without running it, see `unpickle`) or as plain ``.npz``. Nobody publishes a checksum, so the labels
themselves are pinned: the sha256 of each array's bytes as uint8.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data.unpickle import read_dictionary
from softtargets.exceptions import DataError, StorageError

FILES = {
    "cifar10n": ("cifar-n/CIFAR-10_human.pt", "cifar-n/cifar10n.npz"),
    "cifar100n": ("cifar-n/CIFAR-100_human.pt", "cifar-n/cifar100n.npz"),
}

PINNED = {
    "cifar10n": {
        "clean_label": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "aggre_label": "2bd5e02e39c9c79772cf4c794f7b74630ac1aaeeac4b807a63c11e9a375f8404",
        "worse_label": "11a306ed336e3bc81aaac36322ddf12de379d0df1883aa43e10ba562a98f6b2a",
        "random_label1": "8d01b5a5af048e84bf6e964c86e1133e95d5b22c07763e23705b714ad0f32d8b",
        "random_label2": "7ea04c887750912f49669282a75e78df380077766b361fb6cb5200999ad6dcda",
        "random_label3": "cdbfad7e15bfc8fc83bc7c6e30b692e2aa1186660d82738b7543a6012d6ca46f",
    },
    "cifar100n": {
        "clean_label": "9f11b9f97aad759ba6df0a33e3218b01d8deaf4ed3a14aa1185d69b9ad7ebcb3",
        "noisy_label": "54050bc3f9441adc78f204c68915d49a7f86bfa72b8fba04751b961d5be4aa62",
        "clean_coarse_label": "1804078d4e89b6b90bd5da6ffead1404596f6eecba15ceb8d95b6a09dfbba4c0",
        "noisy_coarse_label": "72a87757e6d246ae0dd4cafd3f06505150fe09364d244e4cce2745153b5fad68",
    },
}

# The published files hold 50,000 labels of 8 bytes six times over: 2.4 MB, doubled by their encoding.
_LARGEST = 64 << 20


@dataclass(frozen=True, eq=False)
class HumanLabels:
    """Clean and noisy labels (int64, N each) of the same images, in the order of the dataset.

    >>> import numpy as np
    >>> HumanLabels(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 0]), classes=3).clean_rate
    0.75
    """

    clean: NDArray[np.int64]
    noisy: NDArray[np.int64]
    classes: int

    @property
    def clean_rate(self) -> float:
        """The share of labels that are right."""
        return float((self.clean == self.noisy).mean())


def read_human_labels(path: Path, name: str) -> dict[str, NDArray[np.int64]]:
    """Return every label set of ``cifar10n`` or ``cifar100n`` after checking each against its pin."""
    arrays = _arrays(path)
    labels = {}
    for key, expected in PINNED[name].items():
        array = arrays.get(key)
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
            raise DataError(f"{path} has no list of labels '{key}'; it is not the published {name} file")
        if len(array) and (array.min() < 0 or array.max() > 255):
            raise DataError(f"{path} has labels outside 0 to 255 in '{key}'")
        found = hashlib.sha256(np.ascontiguousarray(array, np.uint8).tobytes()).hexdigest()
        if found != expected:
            raise DataError(
                f"the labels '{key}' in {path} are not the published ones: their sha256 is {found}, "
                f"expected {expected}"
            )
        labels[key] = array.astype(np.int64)
    return labels


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _LARGEST:
                raise DataError(
                    f"{path} unpacks to more than {_LARGEST >> 20} MiB, far more than labels need"
                )
            pickled = [entry for entry in entries if entry.filename.split("/")[-1] == "data.pkl"]
            if pickled:
                return read_dictionary(archive.read(pickled[0]), str(path))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as problem:
        raise DataError(f"{path} is not a readable .pt or .npz file: {problem}") from None
    except OSError as problem:
        raise StorageError(f"could not read {path}: {problem.strerror or problem}") from None
    return _from_npz(path)


def _from_npz(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise DataError(f"{path} is not a readable .npz file: {problem}") from None
