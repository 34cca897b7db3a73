"""Predictions of any model from a file: scores and labels, checked, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, LOAD_BYTES, FileArray, Flat
from softtargets.predictions.choosing import kind_of_name
from softtargets.predictions.failing import PredictionFileError
from softtargets.predictions.kinds import Judgement, Kind, checked, judge
from softtargets.predictions.labels import LabelReader, check_shapes
from softtargets.predictions.table import read_together

MOST_CLASSES = 10_000_000  # a row is read at once
LOOK = 512  # rows that decide what scores are


class Predictions:
    """Scores and labels in a file; made by `open_predictions`.

    `examples` and `classes` say how many there are, `kind` whether scores are "logits" or "probabilities", `reason`
    why they were taken for that, `source` which arrays or columns were used, `class_names` what columns are called.
    """

    examples: int
    classes: int
    kind: Kind
    reason: str
    source: str
    class_names: tuple[str, ...] | None

    def __init__(
        self,
        scores: FileArray,
        labels: FileArray,
        *,
        kind: Kind | None = None,
        class_names: tuple[str, ...] | None = None,
        numbers: Mapping[int, int] | None = None,
        ignore_index: int | None = None,
        source: str = "",
        called: str = "",
    ) -> None:
        self.path = scores.path
        if not scores.is_number:
            raise PredictionFileError(self.path, f"has no numbers in the scores {scores.describe()}")
        if not scores.shape or 0 in scores.shape:
            raise PredictionFileError(
                self.path,
                f"has no examples: its scores are {scores.describe()}",
                "save the predictions again",
            )
        check_shapes(scores, labels)
        self._single = len(scores.shape) == 1 or scores.shape[-1] == 1
        self.classes = 2 if self._single else scores.shape[-1]
        if self.classes > MOST_CLASSES:
            raise PredictionFileError(
                self.path,
                f"has {self.classes} classes in '{scores.name}', and at most {MOST_CLASSES} are read",
                "save scores as (examples, classes)",
            )
        self._reader = LabelReader(labels, scores, self.classes, numbers)
        flat = len(labels.shape) == len(scores.shape) and len(scores.shape) > 1
        self._scores = scores.merged() if len(scores.shape) > 1 else scores
        self._labels = labels.merged() if flat or len(labels.shape) == 1 else Flat(labels)
        self._ignored = ignore_index
        self.class_names = None if self._single else class_names
        self.source = "; ".join(part for part in (source, self._reader.note) if part)
        look = self._look()
        self._judgement: Judgement = judge(
            look,
            forced=kind,
            named=kind_of_name(called or scores.name),
            decimals=scores.decimals(),
            path=self.path,
            single=self._single,
        )
        self.kind, self.reason = self._judgement.kind, self._judgement.reason
        self.examples = self._scores.shape[0] if ignore_index is None else self._count()

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Scores (n, K) in their precision and labels (n,) as int64, `rows` at a time; as often as wanted.

        Without `rows`, chunks have about 16 MiB. Rows without a label (`ignore_index`) are left out, so that a
        chunk may have fewer. Each row is checked on its way: finite, from 0 to 1 with a sum of 1 if probabilities,
        a label that is a class.
        """
        if rows is not None and rows < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
        step = rows or max(1, min(1 << 16, BLOCK_BYTES // self._scores.row_bytes))
        for first, scores, labels in self._raw(step):
            place = self._placer(first)
            scores = checked(scores, self._judgement, self.path, place)
            yield (self._two_classes(scores) if self._single else scores), labels

    def load(self, most: int = LOAD_BYTES) -> tuple[Tensor, Tensor]:
        """All scores (N, K) and labels (N,) at once; refused if they take more than `most` bytes."""
        size = self.examples * (self.classes * 8 + 8)
        if size > most:
            raise PredictionFileError(
                self.path,
                f"has {self.examples} examples of {self.classes} classes, too many to load at once",
                "go through them with chunks()",
            )
        parts = list(self.chunks())
        return torch.cat([scores for scores, _ in parts]), torch.cat([labels for _, labels in parts])

    def __repr__(self) -> str:
        return f"Predictions({self.examples} examples, {self.classes} classes, {self.kind}, {self.source})"

    def _raw(self, rows: int, start: int = 0) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The number in the file of each row, scores and labels, without those to be ignored."""
        for scores, found in read_together(self._scores, self._labels, rows, start):
            number = torch.arange(start, start + len(scores))
            start += len(scores)
            labels, kept = self._reader.read(found, self._placer(number, self._labels), self._ignored)
            scores = scores.reshape(len(scores), -1)
            scores = scores if scores.is_floating_point() else scores.double()
            if not bool(kept.all()):
                number, scores, labels = number[kept], scores[kept], labels[kept]
            if len(labels):
                yield number, scores, labels

    def _look(self) -> Tensor:
        """Some rows from the beginning, the middle and the end, where a file can be read from there."""
        count = self._scores.shape[0]
        step = max(1, min(LOOK, BLOCK_BYTES // self._scores.row_bytes))
        starts = [0]
        if self._scores.seekable and self._labels.seekable and count > 3 * step:
            starts += [(count - step) // 2, count - step]
        found = [next(self._raw(step, start), None) for start in starts]
        seen = [one for one in found if one is not None]
        if not seen:
            raise PredictionFileError(
                self.path,
                f"has no example left: all labels are {self._ignored}",
                "use another ignore_index",
            )
        finite = Judgement("logits", "")
        return torch.cat([checked(scores, finite, self.path, self._placer(rows)) for rows, scores, _ in seen])

    def _count(self) -> int:
        if self._reader.one_hot:
            return self._labels.shape[0]
        ignored = torch.tensor(self._ignored)
        return sum(int(block.ne(ignored).sum()) for block in self._labels.blocks(1 << 16))

    def _placer(self, rows: Tensor, array: FileArray | None = None) -> Callable[[int], str]:
        return lambda row: (array or self._scores).place(int(rows[row]))

    def _two_classes(self, scores: Tensor) -> Tensor:
        if self.kind == "probabilities":
            scores = scores.clamp(0, 1)  # of rounding
            return torch.cat([1 - scores, scores], 1)
        return torch.cat([torch.zeros_like(scores), scores], 1)
