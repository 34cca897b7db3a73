"""Rows that occur more than once: copies of an example are no further examples, and intervals do not know it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

MOST = 1 << 20  # examples, of which eight bytes each are kept
DIFFERENT = 0.5  # of different rows, so many must differ in their largest score: votes of a forest do not


class RepeatedRows:
    """Counts rows that are equal to an earlier one, scores and label, by hashes of 64 bits.

    >>> import torch
    >>> rows = RepeatedRows()
    >>> rows.add(torch.tensor([[0.25, 0.75], [0.5, 0.5], [0.25, 0.75]]), torch.tensor([1, 1, 1]))
    >>> rows.count()
    1
    """

    def __init__(self) -> None:
        self._rows: list[NDArray[np.uint64]] = []
        self._largest: list[NDArray[np.float64]] = []
        self._weights = np.empty(0, dtype=np.uint64)
        self._seen = 0

    def add(self, scores: Tensor, labels: Tensor) -> None:
        """Some rows more; of very many, none is kept."""
        self._seen += len(labels)
        if self._seen > MOST:
            return
        largest = scores.amax(1).double().cpu().numpy()
        numbers = scores.double().cpu().contiguous().numpy().view(np.uint64)
        if len(self._weights) != numbers.shape[1] + 1:
            drawn = np.random.default_rng(0).integers(1 << 63, size=numbers.shape[1] + 1, dtype=np.uint64)
            self._weights = 2 * drawn + np.uint64(1)
        mixed = (numbers ^ (numbers >> np.uint64(29))) @ self._weights[:-1]
        self._rows.append(mixed + labels.cpu().numpy().astype(np.uint64) * self._weights[-1])
        self._largest.append(largest)

    def count(self) -> int:
        """How many rows are repetitions; 0 where scores have few values, so that repetitions are to be expected."""
        if not self._rows or self._seen > MOST:
            return 0
        rows, first = np.unique(np.concatenate(self._rows), return_index=True)
        different = len(np.unique(np.concatenate(self._largest)[first]))
        return 0 if different < DIFFERENT * len(rows) else self._seen - len(rows)
