"""Labelled images in memory, checked once when made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import DataError


@dataclass(frozen=True, eq=False)
class Examples:
    """Images (uint8, N x channels x height x width), their labels (int64, N) and the classes' names.

    Where pictures lie in the upper left corners of squares, `sizes` (N, 2) are their height and width.

    >>> import numpy as np
    >>> pair = Examples(np.zeros((2, 1, 8, 8), np.uint8), np.array([1, 0]), ("cat", "dog"))
    >>> len(pair), pair.take([1]).labels.tolist()
    (2, [0])
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    sizes: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        if not _is_array(self.images, np.uint8, 4):
            raise DataError(
                f"images must be a uint8 array of N x channels x height x width, not {_describe(self.images)}"
            )
        if not self.images.flags.c_contiguous:
            raise DataError("images must be C-contiguous; pass them through numpy.ascontiguousarray")
        if not _is_array(self.labels, np.int64, 1):
            raise DataError(f"labels must be a one-dimensional int64 array, not {_describe(self.labels)}")
        if len(self.images) != len(self.labels):
            raise DataError(f"there are {len(self.images)} images but {len(self.labels)} labels")
        if len(self.labels):
            low, high = self.labels.min(), self.labels.max()
            if low < 0 or high >= len(self.classes):
                raise DataError(f"labels run from {low} to {high}, but there are {len(self.classes)} classes")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: Sequence[int] | NDArray[Any]) -> Examples:
        """Return the examples at these positions (or where a boolean mask holds), in that order."""
        chosen = np.asarray(indices)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        sizes = None if self.sizes is None else self.sizes[chosen]
        return Examples(np.ascontiguousarray(self.images[chosen]), self.labels[chosen], self.classes, sizes)


def _is_array(value: object, dtype: Any, dimensions: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == dimensions


def _describe(value: object) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"{dtype} of shape {shape}"
