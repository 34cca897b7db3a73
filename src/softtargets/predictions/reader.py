"""From a file's name to predictions: which arrays or columns, labels from here or elsewhere."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import get_args

from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import PredictionFileError, listed
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.guess import choose_columns, choose_label_column, choose_labels, choose_scores
from softtargets.predictions.kinds import Kind
from softtargets.predictions.predictions import Predictions
from softtargets.predictions.table import Codes, Stacked, TableArray

PathLike = str | os.PathLike[str]


def open_predictions(
    path: PathLike,
    *,
    labels: PathLike | None = None,
    kind: Kind | None = None,
    scores_name: str | Sequence[str] | None = None,
    labels_name: str | None = None,
    ignore_index: int | None = None,
) -> Predictions:
    """Open predictions of any model: .npz, .npy, .csv, .tsv, .parquet, .safetensors, .pt or .pth.

    Scores are logits or probabilities (examples, classes), one column per class in tables, or one score for the second
    of two classes; tokens (sequences, positions, classes) become rows. Labels are class indices, one-hot rows, or names
    of columns, from the same file or from `labels`. Which arrays or columns, and which kind, is found out and said in
    `source` and `reason`; `scores_name`, `labels_name` and `kind` say it instead. Rows labelled `ignore_index` are left
    out. Nothing in a file is executed. Whatever the file's size, one chunk of it is in memory.

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
    arrays = open_arrays(path)
    other = open_arrays(labels) if labels is not None else None
    if _is_table(arrays):
        return _from_columns(arrays, other, kind, scores_name, labels_name, ignore_index)
    if scores_name is not None and not isinstance(scores_name, str):
        raise PredictionFileError(arrays.path, "has arrays, not columns", "scores_name must be one name")
    scores = choose_scores(arrays, scores_name, kind)
    if other is None and len(arrays) == 1:
        raise PredictionFileError(
            arrays.path,
            f"has no labels: it has {arrays.describe()}",
            "give the file that has them with labels, or save both with numpy.savez(path, logits=..., labels=...)",
        )
    found = choose_labels(arrays, labels_name, scores) if other is None else _other_labels(other, labels_name)
    source = f"scores {scores.describe()} of {arrays.path.name}, {_told(found, arrays)}"
    return Predictions(scores, found, kind=kind, ignore_index=ignore_index, source=source)


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
) -> Predictions:
    table, note = arrays.table, arrays.table.note if arrays.table is not None else ""
    # Also where labels come from another file, a column of them is no score.
    label = (
        choose_label_column(arrays, None) if other is not None else _label_column(arrays, labels_name).name
    )
    columns = choose_columns(arrays, label, scores_name, kind)
    found = arrays[str(label)] if other is None else _other_labels(other, labels_name)
    used = f"scores in columns {listed(columns.classes, 4)} of {arrays.path.name}, {_told(found, arrays)}"
    if coded := found.dtype == "text":
        found = _coded(found, columns.codes)
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
        source="; ".join(filter(None, (used, unused, note))),
    )


def _label_column(arrays: Arrays, name: str | None) -> FileArray:
    found = choose_label_column(arrays, name)
    if found is not None:
        return arrays[found]
    note = f" ({arrays.table.note})" if arrays.table is not None and arrays.table.note else ""
    raise PredictionFileError(
        arrays.path,
        f"has no column of labels by a usual name{note}: it has {arrays.describe()}",
        "say which it is with labels_name, or give another file with labels",
    )


def _other_labels(arrays: Arrays, name: str | None) -> FileArray:
    """Labels from a file of their own."""
    table = name is None and arrays.table is not None and len(arrays) > 1
    found = choose_label_column(arrays, None) if table else None
    return choose_labels(arrays, name) if found is None else arrays[found]


def _coded(labels: FileArray, codes: Codes) -> FileArray:
    if not isinstance(labels, TableArray):
        raise labels.refused(
            f"has labels '{labels.name}' that are not numbers", "save the index of each example's class"
        )
    return TableArray(labels.table, labels.columns, flat=True, codes=codes)


def _told(labels: FileArray, arrays: Arrays) -> str:
    where = f" of {labels.path.name}" if labels.path != arrays.path else ""
    return f"labels '{labels.name}'{where}"
