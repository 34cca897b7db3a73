"""Rows of an array with their labels, read side by side: what predictions and activations have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, FileArray, Merged
from softtargets.predictions.labels import LabelReader
from softtargets.predictions.table import read_together


class LabelledBlock(NamedTuple):
    """Some rows (n, K), their labels (n,) as int64, and where each was, in words."""

    values: Tensor
    labels: Tensor
    place: Callable[[int], str]


class LabelledRows:
    """Rows (N, K), or (N,), and their labels; those with the label `ignored` are left out and may hold anything."""

    def __init__(
        self, values: FileArray, labels: FileArray, reader: LabelReader, ignored: int | None
    ) -> None:
        self.values, self.reader, self.ignored = values.merged(), reader, ignored
        self.labels = (
            labels.merged() if reader.one_hot or len(labels.shape) == 1 else Merged(labels, flat=True)
        )

    @property
    def seekable(self) -> bool:
        """Whether reading may begin anywhere."""
        return self.values.seekable and self.labels.seekable

    def count(self) -> int:
        """How many rows count."""
        if self.ignored is None or self.reader.one_hot:
            return self.values.shape[0]
        ignored = torch.tensor(self.ignored)
        if count := sum(int(block.ne(ignored).sum()) for block in self.labels.blocks(1 << 16)):
            return count
        raise self.nothing_left()

    def blocks(self, rows: int | None = None, start: int = 0) -> Iterator[LabelledBlock]:
        """So many rows at a time, or about 16 MiB; fewer where some are left out."""
        if rows is not None and rows < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
        step = rows or max(1, min(1 << 16, BLOCK_BYTES // self.values.row_bytes))
        for values, found in read_together(self.values, self.labels, step, start):
            number = torch.arange(start, start + len(values))
            start += len(values)
            labels, kept = self.reader.read(found, _placer(self.labels, number), self.ignored)
            values = values.reshape(len(values), -1)
            values = values if values.is_floating_point() else values.double()
            if not bool(kept.all()):
                number, values, labels = number[kept], values[kept], labels[kept]
            if len(labels):
                yield LabelledBlock(values, labels, _placer(self.values, number))

    def nothing_left(self) -> Exception:
        """What to say where all rows are ignored."""
        return self.values.refused(
            f"has no example left: all labels are {self.ignored}", "use another ignore_index"
        )


def _placer(array: FileArray, rows: Tensor) -> Callable[[int], str]:
    return lambda row: array.place(int(rows[row]))
