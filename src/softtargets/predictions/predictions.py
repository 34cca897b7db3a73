"""Predictions of any model from a file: scores and labels, checked, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, LOAD_BYTES, FileArray
from softtargets.predictions.guess import kind_of_name
from softtargets.predictions.kinds import Judgement, Kind, checked, judge
from softtargets.predictions.labelled import LabelledRows
from softtargets.predictions.labels import LabelReader, check_shapes

MOST_CLASSES = 10_000_000  # a row is read at once
LOOK = 512  # rows that decide what scores are
ANYTHING = Judgement("logits", "")  # finite, as long as nobody knows more


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
        self._refuse_unusable(scores)
        check_shapes(scores, labels)
        self._single = len(scores.shape) == 1 or scores.shape[-1] == 1
        self.classes = 2 if self._single else scores.shape[-1]
        reader = LabelReader(labels, scores, self.classes, numbers)
        self._rows = LabelledRows(scores, labels, reader, ignore_index)
        self.class_names = None if self._single else class_names
        self.source = "; ".join(part for part in (source, reader.note) if part)
        self._judgement: Judgement = judge(
            self._look(),
            forced=kind,
            named=kind_of_name(called or scores.name),
            decimals=scores.decimals(),
            path=self.path,
            single=self._single,
        )
        self.kind, self.reason = self._judgement.kind, self._judgement.reason
        self.examples = self._rows.count()

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Scores (n, K) in their precision and labels (n,) as int64, `rows` at a time; as often as wanted.

        Without `rows`, chunks have about 16 MiB. Rows without a label (`ignore_index`) are left out, so that a
        chunk may have fewer. Each row is checked on its way: finite, from 0 to 1 with a sum of 1 if probabilities,
        a label that is a class.
        """
        for scores, labels, place in self._rows.blocks(rows):
            scores = self._two_classes(scores) if self._single else scores
            yield checked(scores, self._judgement, self.path, place), labels

    def load(self, most: int = LOAD_BYTES) -> tuple[Tensor, Tensor]:
        """All scores (N, K) and labels (N,) at once; refused if they take more than `most` bytes."""
        size = self.examples * (self.classes * 8 + 8)
        if size > most:
            raise self._rows.values.refused(
                f"has {self.examples} examples of {self.classes} classes, too many to load at once",
                "go through them with chunks()",
            )
        parts = list(self.chunks())
        return torch.cat([scores for scores, _ in parts]), torch.cat([labels for _, labels in parts])

    def __repr__(self) -> str:
        return f"Predictions({self.examples} examples, {self.classes} classes, {self.kind}, {self.source})"

    @staticmethod
    def _refuse_unusable(scores: FileArray) -> None:
        if not scores.is_number:
            raise scores.refused(f"has no numbers in the scores {scores.describe()}")
        if not scores.shape or 0 in scores.shape:
            raise scores.refused(
                f"has no examples: its scores are {scores.describe()}", "save the predictions again"
            )
        if scores.shape[-1] > MOST_CLASSES and len(scores.shape) > 1:
            raise scores.refused(
                f"has {scores.shape[-1]} classes in '{scores.name}', and at most {MOST_CLASSES} are read",
                "save scores as (examples, classes)",
            )

    def _look(self) -> Tensor:
        """Some rows from the beginning, the middle and the end, where a file can be read from there."""
        count = self._rows.values.shape[0]
        step = max(1, min(LOOK, BLOCK_BYTES // self._rows.values.row_bytes))
        starts = [0]
        if self._rows.seekable and count > 3 * step:
            starts += [(count - step) // 2, count - step]
        found = [next(self._rows.blocks(step, start), None) for start in starts]
        seen = [checked(one.values, ANYTHING, self.path, one.place) for one in found if one is not None]
        if not seen:
            raise self._rows.nothing_left()
        return torch.cat(seen)

    def _two_classes(self, scores: Tensor) -> Tensor:
        if self.kind == "logits":
            return torch.cat([torch.zeros_like(scores), scores], 1)
        rounded = (scores > 1) & (scores <= 1 + (self._judgement.tolerance or 0))
        scores = torch.where(rounded, torch.ones_like(scores), scores)
        return torch.cat([1 - scores, scores], 1)
