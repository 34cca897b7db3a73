"""What calibration is measured on: rows of scores with their labels, cut into pieces that fit into a cache.

Nothing of the size of the scores is ever made: numpy arrays and memory maps are looked at where they lie, rows
that are ignored are left out a piece at a time, and half precision is widened a piece at a time.
"""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels
from softtargets.arrays.checking import SUM_TOLERANCE

PIECE = 2**20  # numbers in a piece: several passes over it are then made in the cache
PIECE_ON_DEVICE = 2**26  # where starting an operation costs more than a cache saves


@dataclass(frozen=True)
class Given:
    """Scores (N, K) and labels (N,); `kept` are the rows that count, None for all of them."""

    scores: Tensor
    labels: Tensor
    kept: Tensor | None
    from_logits: bool

    @property
    def name(self) -> str:
        """What the scores are called in messages."""
        return "logits" if self.from_logits else "probabilities"

    @property
    def classes(self) -> int:
        """The number of classes, K."""
        return self.scores.shape[1]

    @property
    def examples(self) -> int:
        """The number of rows that count."""
        return len(self.labels) if self.kept is None else len(self.kept)

    @property
    def tolerance(self) -> float:
        """How far probabilities of this precision may be from adding up to 1."""
        return SUM_TOLERANCE[self.scores.dtype]

    @property
    def starts(self) -> range:
        """Where pieces begin among the rows that count."""
        return range(0, self.examples, self._rows)

    def piece(self, start: int) -> tuple[Tensor, Tensor]:
        """The piece that begins there: its scores in at least float32, its labels."""
        stop = min(start + self._rows, self.examples)
        if self.kept is None:
            scores, labels = self.scores[start:stop], self.labels[start:stop]
        else:
            which = self.kept[start:stop]
            scores, labels = self.scores.index_select(0, which), self.labels.index_select(0, which)
        if scores.dtype in (torch.float16, torch.bfloat16):
            scores = scores.float()
        return scores, labels

    @property
    def _rows(self) -> int:
        return max(1, (PIECE if self.scores.device.type == "cpu" else PIECE_ON_DEVICE) // self.classes)

    def example(self, row: int) -> int:
        """The place, among all rows, of one that counts."""
        return row if self.kept is None else int(self.kept[row])


def as_given(
    scores: ArrayLike, labels: ArrayLike, *, from_logits: bool, ignore_index: int | None = None
) -> Given:
    """Scores (..., K) and labels (...) as rows, labels and shapes checked; the scores are checked on the way.

    >>> as_given(torch.zeros(2, 5, 3), torch.zeros(2, 5), from_logits=True).scores.shape
    torch.Size([10, 3])
    >>> as_given(torch.tensor([0.2, 0.9]), torch.tensor([0, 1]), from_logits=False)
    Traceback (most recent call last):
    ValueError: probabilities must be (examples, classes), at least one of each, not (2,); two classes are two
    columns, stack([1 - p, p], -1)
    """
    name = "logits" if from_logits else "probabilities"
    found, true = _tensor(scores), _tensor(labels)
    if found.is_complex() or found.dtype == torch.bool:
        raise ValueError(f"{name} must be real numbers, not {found.dtype}")
    if found.dtype not in SUM_TOLERANCE:
        found = found.double()
    shape = tuple(found.shape)
    if found.ndim < 2 or 0 in shape:
        hint = "; two classes are two columns, stack([1 - p, p], -1)" if found.ndim == 1 else ""
        raise ValueError(f"{name} must be (examples, classes), at least one of each, not {shape}{hint}")
    if tuple(true.shape) != shape[:-1]:
        examples = f"{shape[0]} examples" if found.ndim == 2 else f"examples {shape[:-1]}"
        raise ValueError(f"there must be one label for each of the {examples}, not {tuple(true.shape)}")
    found, true = found.detach().reshape(-1, shape[-1]), true.detach().reshape(-1)
    if ignore_index is None:
        return Given(found, as_labels(true, *found.shape).to(found.device), None, from_logits)
    ignored = true == operator.index(ignore_index)
    true = as_labels(torch.where(ignored, torch.zeros_like(true), true), *found.shape).to(found.device)
    kept = (~ignored).nonzero().squeeze(1).to(found.device)
    return Given(found, true, None if len(kept) == len(true) else kept, from_logits)


def refuse(given: Given) -> None:
    """Raise the sentence about the first row that is wrong; return if there is none after all."""
    for start in given.starts:
        scores, _ = given.piece(start)
        bad = ~torch.isfinite(scores).all(1)
        if not given.from_logits:
            outside = (scores.amin(1) < 0) | (scores.amax(1) > 1 + given.tolerance)
            sums = scores.sum(1, dtype=torch.float64)
            bad = bad | outside | ((sums - 1).abs() > given.tolerance)
        if bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise ValueError(_complaint(given, scores[row], given.example(start + row)))


def _complaint(given: Given, row: Tensor, example: int) -> str:
    infinite = ~torch.isfinite(row)
    if bool(infinite.any()):
        place = int(infinite.nonzero()[0])
        return f"{given.name} of example {example} are not all finite: {float(row[place])} for class {place}"
    if bool((row < 0).any()) or bool((row > 1 + given.tolerance).any()):
        return (
            f"{given.name} must lie between 0 and 1, but example {example} has {float(row.amin()):g} to "
            f"{float(row.amax()):g}; pass softmax(logits), not logits"
        )
    return (
        f"{given.name} of each example must add up to 1, but those of example {example} add up to "
        f"{float(row.sum(dtype=torch.float64)):g}; divide by the sum, or pass all classes"
    )


def _tensor(values: ArrayLike) -> Tensor:
    if isinstance(values, Tensor):
        return values
    array = np.asarray(values)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)  # torch cannot compare the larger unsigned integers
    if any(stride < 0 for stride in array.strides):
        array = np.ascontiguousarray(array)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a read-only map of a file: nothing here writes to it
        return torch.as_tensor(array)
