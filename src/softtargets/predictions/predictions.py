"""Predictions of any model from a file: scores and labels, found, checked, some rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import torch
from torch import Tensor

from softtargets.predictions import guess
from softtargets.predictions.array import BLOCK_BYTES, LOAD_BYTES, FileArray
from softtargets.predictions.errors import FoundFile, line, listed
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.kinds import ANYTHING, Kind, checked, judge
from softtargets.predictions.labels import LabelledRows, NoLabels, check_shapes
from softtargets.predictions.table import Stacked, TableArray

PathLike = str | os.PathLike[str]
MOST_CLASSES = 1_000_000  # a row is read at once, and the sums by class and bin take half a gigabyte
LOOK = 512  # rows that decide what scores are


class Predictions:
    """Scores and labels in a file; made by `open_predictions`.

    `examples` and `classes` say how many there are, `kind` whether scores are "logits" or "probabilities", `reason`
    why they were taken for that, `source` which arrays or columns were used, `class_names` what columns are called.
    Where they are not `labelled`, the labels of chunks say nothing.
    """

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
        files: Sequence[FoundFile] = (),
    ) -> None:
        self.path = scores.path
        self.labelled = not isinstance(labels, NoLabels)
        self._refuse_unusable(scores)
        check_shapes(scores, labels)
        self._single = len(scores.shape) == 1 or scores.shape[-1] == 1
        self.classes = 2 if self._single else scores.shape[-1]
        self._rows = LabelledRows(scores, labels, self.classes, ignore_index, numbers, files)
        self.class_names = None if self._single or class_names is None else tuple(map(line, class_names))
        tokens = "each position of a sequence is an example" if len(scores.shape) > 2 else ""
        self.source = line("; ".join(part for part in (source, tokens, self._rows.note) if part))
        named = guess.kind_of_name(called or scores.name)
        self._judgement = judge(self._look(), scores, forced=kind, named=named, single=self._single)
        self.kind, self.reason = self._judgement.kind, self._judgement.reason
        self.examples = self._rows.count()

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Scores (n, K) in their precision and labels (n,) as int64, `rows` at a time; as often as wanted.

        Without `rows`, chunks have about 16 MiB. Rows without a label (`ignore_index`) are left out, so that a
        chunk may have fewer. Each row is checked on its way: finite, from 0 to 1 with a sum of 1 if probabilities,
        a label that is a class.
        """
        for scores, labels, _ in self.numbered_chunks(rows):
            yield scores, labels

    def numbered_chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """The same chunks, each with the numbers (n,) of its rows in the file: from 0, those left out counted."""
        for scores, labels, place, numbers in self._rows.blocks(rows):
            scores = self._two_classes(scores) if self._single else scores
            yield checked(scores, self._judgement, self.path, place), labels, numbers

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


def open_predictions(
    path: PathLike | Arrays,
    *,
    labels: PathLike | None = None,
    kind: Kind | None = None,
    scores_name: str | Sequence[str] | None = None,
    labels_name: str | None = None,
    ignore_index: int | None = None,
    labels_needed: bool = True,
) -> Predictions:
    """Open predictions of any model: .npz, .npy, .csv, .tsv, .jsonl, .parquet, .safetensors, .pt or .pth.

    Scores are logits or probabilities (examples, classes), one column per class in tables, or one score for the second
    of two classes; tokens (sequences, positions, classes) become rows. Labels are class indices, one-hot rows, or names
    of columns, from the same file or from `labels`. Which arrays or columns, and which kind, is found out and said in
    `source` and `reason`; `scores_name`, `labels_name` and `kind` say it instead. Rows labelled `ignore_index` are left
    out. Where no `labels_needed`, scores may come without any. Nothing in a file is executed. Whatever the file's size,
    one chunk of it is in memory.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     logits = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]])
    ...     np.savez(f"{directory}/a.npz", logits=logits, labels=np.array([0, 2]))
    ...     found = open_predictions(f"{directory}/a.npz")
    ...     for scores, labels in found.chunks():
    ...         print(scores.argmax(1).tolist(), labels.tolist())
    [0, 1] [0, 2]
    >>> found.examples, found.classes, found.kind
    (2, 3, 'logits')
    >>> found.reason
    'scores do not lie between 0 and 1 with a sum of 1 (2 rows looked at): logits'
    """
    if kind is not None and kind not in get_args(Kind):
        raise ValueError(f"kind must be 'logits' or 'probabilities', not {kind!r}")
    arrays = path if isinstance(path, Arrays) else open_arrays(path)
    other = open_arrays(labels) if labels is not None else None
    if _is_table(arrays):
        return _from_columns(arrays, other, kind, scores_name, labels_name, ignore_index, labels_needed)
    if scores_name is not None and not isinstance(scores_name, str):
        raise arrays.refused("has arrays, not columns", "scores_name must be one name")
    scores = guess.choose_scores(arrays, scores_name, kind)
    found = _labels_of(arrays, other, labels_name, scores, labels_needed)
    source = f"scores {scores.describe()} of {arrays.path.name}, {_told(found, arrays)}"
    files = _files(arrays, other)
    return Predictions(scores, found, kind=kind, ignore_index=ignore_index, source=source, files=files)


def _labels_of(
    arrays: Arrays, other: Arrays | None, name: str | None, scores: FileArray, needed: bool
) -> FileArray:
    if other is not None:
        return _other_labels(other, name)
    if not needed and name is None:
        called = guess.named([one for one in arrays if one != scores.name], guess.LABELS)
        return guess.choose_labels(arrays, None, scores) if called else NoLabels(scores)
    if len(arrays) == 1:
        raise arrays.refused(
            f"has no labels: it has {arrays.describe()}",
            "give the file that has them with labels, or save both with numpy.savez(path, logits=..., labels=...)",
        )
    return guess.choose_labels(arrays, name, scores)


def _files(arrays: Arrays, other: Arrays | None) -> list[FoundFile]:
    return [arrays.file, *([other.file] if other is not None else [])]


def _is_table(arrays: Arrays) -> bool:
    """Whether there is a column for each class: not if a column has lists, or there are arrays."""
    shapes = [array.shape for array in arrays.values()]
    return all(len(shape) == 1 for shape in shapes) and (
        arrays.table is not None or (len(shapes) > 2 and len(set(shapes)) == 1)
    )


def _from_columns(
    arrays: Arrays,
    other: Arrays | None,
    kind: Kind | None,
    scores_name: str | Sequence[str] | None,
    labels_name: str | None,
    ignore_index: int | None,
    labels_needed: bool,
) -> Predictions:
    table = arrays.table
    label, found = _label_column(arrays, other, labels_name, labels_needed)
    columns = guess.choose_columns(arrays, label, scores_name, kind)
    used = f"scores in columns {listed(columns.classes, 4)} of {arrays.path.name}, {_told(found, arrays)}"
    if coded := isinstance(found, TableArray) and found.dtype == "text":
        found = TableArray(found.table, found.columns, flat=True, codes=columns.codes)
        used += " by the names of classes"
    unused = f"not used: {listed(columns.ignored)}" if columns.ignored else ""
    meant = table is None or table.named  # the names of columns are those of classes
    return Predictions(
        TableArray(table, columns.classes) if table else Stacked([arrays[one] for one in columns.classes]),
        found,
        kind=kind,
        class_names=columns.names if meant else None,
        numbers=columns.numbers if meant and not coded else None,
        ignore_index=ignore_index,
        called=columns.called,
        files=_files(arrays, other),
        source="; ".join(filter(None, (used, unused, arrays.note))),
    )


def _label_column(
    arrays: Arrays, other: Arrays | None, name: str | None, needed: bool
) -> tuple[str | None, FileArray]:
    """The column of labels, which is no score also where another file has the labels, and the labels."""
    found = guess.choose_label_column(arrays, name if other is None else None)
    if other is not None:
        return found, _other_labels(other, name)
    if found is not None:
        return found, arrays[found]
    if not needed:
        return None, NoLabels(next(iter(arrays.values())))
    note = f" ({arrays.note})" if arrays.note else ""
    raise arrays.refused(
        f"has no column of labels under a usual name{note}: it has {arrays.describe()}",
        "name the column with labels_name, or give another file with labels",
    )


def _other_labels(arrays: Arrays, name: str | None) -> FileArray:
    """Labels from a file of their own."""
    table = name is None and arrays.table is not None and len(arrays) > 1
    found = guess.choose_label_column(arrays, None) if table else None
    return guess.choose_labels(arrays, name) if found is None else arrays[found]


def _told(labels: FileArray, arrays: Arrays) -> str:
    if isinstance(labels, NoLabels):
        return "no labels"
    where = f" of {labels.path.name}" if labels.path != arrays.path else ""
    return f"labels '{labels.name}'{where}"
