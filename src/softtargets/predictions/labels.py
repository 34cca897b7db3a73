"""Rows of an array and their labels, read side by side; labels of any form become class indices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.arrays import resolution_advice
from softtargets.exceptions import SofttargetsError
from softtargets.predictions.array import BLOCK_BYTES, FileArray, Merged
from softtargets.predictions.errors import FoundFile, PredictionFileError, listed
from softtargets.predictions.table import read_together

Place = Callable[[int], str]  # where a row of a block is, in words
_Pair = tuple[Tensor, Tensor]


class LabelledBlock(NamedTuple):
    """Some rows (n, K), their labels (n,) as int64, where each was in words, and its number in the file from 0."""

    values: Tensor
    labels: Tensor
    place: Place
    numbers: Tensor


class NoLabels(FileArray):
    """Labels of scores that have none: class 0 for all of them, which says nothing."""

    def __init__(self, scores: FileArray) -> None:
        self.path, self.name, self.dtype = scores.path, "none", "int64"
        self.shape = scores.shape[:-1] if len(scores.shape) > 1 else scores.shape

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """As many as there are scores."""
        for first in range(start, self.shape[0], rows):
            yield torch.zeros(min(rows, self.shape[0] - first), *self.shape[1:], dtype=torch.int64)


class LabelledRows:
    """Rows (N, K), or (N,), and their labels; those with the label `ignored` are left out and may hold anything.

    Labels are whole numbers, one-hot rows, True and False, or other `numbers` with the class of each; `note` says how
    they were taken, where it is not obvious.
    """

    def __init__(
        self,
        values: FileArray,
        labels: FileArray,
        classes: int,
        ignored: int | None,
        numbers: Mapping[int, int] | None = None,
        files: Sequence[FoundFile] = (),
    ) -> None:
        if ignored is not None and not -(2**63) <= (ignored := operator.index(ignored)) < 2**63:
            raise SofttargetsError(f"must be a number of 64 bits, not {ignored}", argument="ignore_index")
        one_hot = labels.shape == values.shape and len(values.shape) > 1 and values.shape[-1] > 1
        self.values = values.merged()
        self.labels = labels.merged() if one_hot or len(labels.shape) == 1 else Merged(labels, flat=True)
        self.ignored = None if one_hot else ignored
        self._classes, self._one_hot, self._numbers = classes, one_hot, numbers
        self._files = files
        note = self._how_taken()
        self.note = note if numbers is None else "labels are the names of columns"

    @property
    def seekable(self) -> bool:
        """Whether reading may begin anywhere."""
        return self.values.seekable and self.labels.seekable

    def count(self) -> int:
        """How many rows count."""
        if self.ignored is None:
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
        for values, found in self._unchanged(read_together(self.values, self.labels, step, start)):
            number = torch.arange(start, start + len(values))
            start += len(values)
            labels, kept = self._read(found, _placer(self.labels, number))
            values = values.reshape(len(values), -1)
            values = values if values.is_floating_point() else values.double()
            if not bool(kept.all()):
                number, values, labels = number[kept], values[kept], labels[kept]
            if len(labels):
                yield LabelledBlock(values, labels, _placer(self.values, number), number)

    def _unchanged(self, blocks: Iterator[_Pair]) -> Iterator[_Pair]:
        """The same, if the files are afterwards what they were when they were opened."""
        yield from blocks
        for file in self._files:
            file.refuse_changed()

    def nothing_left(self) -> PredictionFileError:
        """What to say where all rows are ignored."""
        return self.values.refused(
            f"has no example left: all labels are {self.ignored}", "use another ignore_index"
        )

    def _how_taken(self) -> str:
        if self._one_hot:
            return "labels are one-hot rows"
        if self.labels.dtype in ("text", "other"):
            raise self.labels.refused(
                f"has labels '{self.labels.name}' that are not numbers",
                "save the index of each example's class",
            )
        if self.labels.dtype != "bool":
            return ""
        if self._classes != 2:
            raise self.labels.refused(
                f"has True and False as labels for {self._classes} classes",
                "labels must be the index of each example's class",
            )
        return "False is class 0 and True is class 1"

    def _read(self, found: Tensor, place: Place) -> tuple[Tensor, Tensor]:
        """Class indices (n,) as int64, and which of them are not ignored; those that are mean nothing."""
        if self._one_hot:
            labels = self._from_one_hot(found, place)
            return labels, torch.ones_like(labels, dtype=torch.bool)
        values = found.reshape(len(found))
        if values.is_floating_point():
            if bool((broken := values != values.round()).any()):  # NaN included
                row = int(broken.nonzero()[0])
                advice = "labels must be whole numbers, the index of each example's class"
                raise self.labels.refused(f"has the label {float(values[row]):g} in {place(row)}", advice)
            # Too large for an integer is out of range all the more.
            values = values.clamp(-(2.0**62), 2.0**62)
        values = values.long()
        kept = torch.ones_like(values, dtype=torch.bool) if self.ignored is None else values != self.ignored
        if self._numbers is not None:
            values = self._by_name(values, kept, self._numbers, place)
        outside = kept & ((values < 0) | (values >= self._classes))
        if bool(outside.any()):
            row = int(outside.nonzero()[0])
            raise self._out_of_range(found.reshape(len(found))[row].item(), place(row))
        return values, kept

    def _out_of_range(self, label: float, place: str) -> PredictionFileError:
        advice = "check that the labels belong to these scores"
        if self.values.shape[1:] in ((), (1,)):  # one score, that of class 1
            advice += "; if the score is the probability of the predicted class, call it 'confidence'"
        if label < 0:
            advice = f"if it marks examples without a label, use ignore_index={label:.0f}"
        elif label == self._classes:
            advice = "if labels are counted from 1, subtract 1; otherwise scores of some classes are missing"
        classes = f"{self._classes} classes are 0 to {self._classes - 1}"
        return self.labels.refused(f"has the label {label:.15g} in {place}, but {classes}", advice)

    def _by_name(self, values: Tensor, kept: Tensor, numbers: Mapping[int, int], place: Place) -> Tensor:
        names = torch.tensor(sorted(numbers))
        places = torch.searchsorted(names, values).clamp(max=len(names) - 1)
        known = (names[places] == values) | ~kept
        found = torch.tensor([numbers[number] for number in sorted(numbers)])[places]
        if not bool(known.all()):
            row = int((~known).nonzero()[0])
            raise self.labels.refused(
                f"has the label {int(values[row])} in {place(row)}",
                f"columns are named {listed(numbers)}, and labels must be among them",
            )
        return found

    def _from_one_hot(self, found: Tensor, place: Place) -> Tensor:
        plain = found.long() if not found.is_floating_point() else found
        fine = ((plain == 0) | (plain == 1)).all(1) & (plain.sum(1) == 1)
        if not bool(fine.all()):
            row = int((~fine).nonzero()[0])
            raise self.labels.refused(
                f"has labels of the shape of the scores that are not one-hot in {place(row)}",
                "exactly one class of each example must be 1 and the others 0",
            )
        return plain.argmax(1)


def _placer(array: FileArray, rows: Tensor) -> Place:
    return lambda row: array.place(int(rows[row]))


def check_shapes(scores: FileArray, labels: FileArray) -> None:
    """Refuse labels that do not belong to these scores."""
    leading = scores.shape[:-1] if len(scores.shape) > 1 else scores.shape
    if labels.shape in (leading, (*leading, 1), scores.shape):
        return
    advice = "there must be one label for each example"
    if len(labels.shape) == 1 and len(scores.shape) == 2 and scores.shape[1] == labels.shape[0]:
        advice = "transpose the scores to (examples, classes)"
    elif len(scores.shape) > 2 and (scores.shape[0], *scores.shape[2:]) == labels.shape:
        advice = "move the classes to the last dimension of the scores"
    elif resized := resolution_advice(scores.shape, labels.shape):
        advice = resized.removeprefix("; ")
    where = f" of {labels.path}" if labels.path != scores.path else ""
    raise scores.refused(
        f"has scores '{scores.name}' {scores.shape} that do not match the labels '{labels.name}' {labels.shape}{where}",
        advice,
    )
