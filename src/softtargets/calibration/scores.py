"""What calibration is measured on: rows of scores with their labels, cut into pieces that fit into a cache.

Nothing of the size of the scores is ever made: numpy arrays and memory maps are looked at where they lie, rows
that are ignored are left out a piece at a time, and half precision is widened a piece at a time.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import (
    ArrayLike,
    as_floating,
    as_labels,
    refuse_fault,
    resolution_advice,
    single_or_double,
    sum_tolerance,
    whole_numbers,
)

PIECE = 2**19  # numbers in a piece: several passes over it are then made in the cache
PIECE_ON_DEVICE = 2**26  # where starting an operation costs more than a cache saves


Piece = tuple[Tensor, Tensor]  # scores (n, K) and labels (n,)


@dataclass(frozen=True)
class Scores:
    """Scores (N, K) and labels (N,); `kept` are the rows that count, None for all of them.

    `first` is the place of the first row in the whole, for messages. `checked` scores have been looked at by whoever
    gave them, a reader of files for instance, and are not looked at again.
    """

    values: ArrayLike
    labels: Tensor
    kept: Tensor | None
    from_logits: bool
    checked: bool
    first: int

    @property
    def device(self) -> torch.device:
        """Where the scores are."""
        return self.labels.device

    @property
    def tolerance(self) -> float:
        """How far probabilities of this precision may be from adding up to 1."""
        return sum_tolerance(as_floating(self.values[:0], self.name).dtype)

    @property
    def name(self) -> str:
        """What the scores are called in messages."""
        return name_of(self.from_logits)

    @property
    def classes(self) -> int:
        """The number of classes, K."""
        return self.values.shape[1]

    @property
    def examples(self) -> int:
        """The number of rows that count."""
        return len(self.labels) if self.kept is None else len(self.kept)

    @property
    def starts(self) -> range:
        """Where pieces begin among the rows that count."""
        return range(0, self.examples, rows_of_a_piece(self.values))

    def piece(self, start: int) -> Piece:
        """The piece that begins there: its scores in at least float32, its labels."""
        scores, labels = self._as_they_are(start)
        return single_or_double(scores), labels

    def checked_piece(self, start: int) -> Piece:
        """The same in their own precision, once they have been looked at."""
        scores, labels = self._as_they_are(start)
        if not self.checked:
            tolerance = None if self.from_logits else self.tolerance
            refuse_fault(scores, tolerance, self.name, lambda row: self._place(start + row))
        return scores, labels

    def refuse(self) -> None:
        """Raise the sentence about the first row that is wrong; return if there is none after all."""
        for start in self.starts:
            self.checked_piece(start)

    def places(self, start: int, first: int = 0) -> Tensor:
        """Which rows of the whole the piece that begins there has, the first of these scores being number `first`."""
        stop = min(start + rows_of_a_piece(self.values), self.examples)
        rows = torch.arange(start, stop, device="cpu") if self.kept is None else self.kept[start:stop].cpu()
        return rows + first

    def _as_they_are(self, start: int) -> Piece:
        some = slice(start, min(start + rows_of_a_piece(self.values), self.examples))
        if self.kept is None:
            return as_floating(self.values[some], self.name), self.labels[some]
        which = self.kept[some]
        if isinstance(self.values, Tensor):
            return self.values.index_select(0, which), self.labels.index_select(0, which)
        return as_floating(self.values[which.numpy()], self.name), self.labels.index_select(0, which)

    def _place(self, row: int) -> int:
        return self.first + (row if self.kept is None else int(self.kept[row]))


def as_scores(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool,
    ignore_index: int | None = None,
    checked: bool = False,
    first: int = 0,
) -> Scores:
    """Scores (..., K) and labels (...) as rows, labels and shapes checked; the scores are checked on the way.

    >>> as_scores(torch.zeros(2, 5, 3), torch.zeros(2, 5), from_logits=True).values.shape
    torch.Size([10, 3])
    >>> as_scores(torch.tensor([0.2, 0.9]), torch.tensor([0, 1]), from_logits=False)
    Traceback (most recent call last):
    ValueError: probabilities must be (examples, classes), at least one of each, not (2,); two classes need two
    columns, stack([1 - p, p], -1)
    """
    found = scores.detach() if isinstance(scores, Tensor) else np.asarray(scores)
    check_shapes(found, labels, from_logits=from_logits)
    if isinstance(found, Tensor):
        found = as_floating(found, name_of(from_logits))
    as_floating(found[:0], name_of(from_logits))  # refuses other kinds of numbers
    found = found.reshape(-1, found.shape[-1])
    device = found.device if isinstance(found, Tensor) else torch.device("cpu")
    true, kept = whole_numbers(labels).detach().reshape(-1), None
    if ignore_index is not None and bool((ignored := true == operator.index(ignore_index)).any()):
        kept = (~ignored).nonzero().squeeze(1).to(device)
        true = torch.where(ignored, torch.zeros_like(true), true)
    advice = "; rows without a label are left out by ignore_index"
    true = as_labels(true, *found.shape, place=lambda row: first + row, advice=advice).to(device)
    return Scores(found, true, kept, from_logits, checked, first)


def check_shapes(scores: ArrayLike, labels: ArrayLike, *, from_logits: bool) -> None:
    """Refuse what is not scores (..., K) with labels (...), or may have its classes second, as losses take them.

    Probabilities add up to 1 over their classes, wherever these are; of logits only the shape tells.

    >>> check_shapes(torch.zeros(2, 5, 3), torch.zeros(2, 3), from_logits=True)
    Traceback (most recent call last):
    ValueError: logits (2, 5, 3) with labels (2, 3) have the classes in their second dimension; they must be in the
    last: pass logits.movedim(1, -1)
    """
    shape, given = tuple(scores.shape), tuple(np.shape(labels))
    name = name_of(from_logits)
    if len(shape) < 2 or 0 in shape:
        hint = "; two classes need two columns, stack([1 - p, p], -1)" if len(shape) == 1 else ""
        raise ValueError(f"{name} must be (examples, classes), at least one of each, not {shape}{hint}")
    if len(shape) > 2 and given == shape[:1] + shape[2:]:
        if given != shape[:-1]:
            raise ValueError(
                f"{name} {shape} with labels {given} have the classes in their second dimension; they must be in the "
                f"last: pass {name}.movedim(1, -1)"
            )
        if from_logits and shape[-1] > 1:
            raise ValueError(
                f"the {shape[-1]} classes of logits {shape} may be in the last dimension, or in the second as for "
                f"losses. Pass rows to say which: logits.reshape(-1, {shape[-1]}), after logits.movedim(1, -1) if "
                "classes are second, and labels.reshape(-1)"
            )
    if given != shape[:-1]:
        examples = shape[0] if len(shape) == 2 else shape[:-1]
        advice = resolution_advice(shape, given, name)
        if advice and len(shape) > 2:
            raise ValueError(f"{name} {shape} do not match the labels {given}{advice}")
        raise ValueError(f"there must be one label for each of the {examples} examples, not {given}")


def rows_of_a_piece(scores: ArrayLike) -> int:
    """How many rows to work on at a time."""
    on_device = isinstance(scores, Tensor) and scores.device.type != "cpu"
    return max(1, (PIECE_ON_DEVICE if on_device else PIECE) // max(1, scores.shape[1]))


def name_of(from_logits: bool) -> str:
    """What scores are called in messages."""
    return "logits" if from_logits else "probabilities"
