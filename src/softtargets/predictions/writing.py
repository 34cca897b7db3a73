"""Predictions written to a file some rows at a time, in a form that `open_predictions` reads again."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as numpy_format
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.predictions.kinds import Kind
from softtargets.storage import replacing

Rows = Iterable[tuple[Tensor, Tensor | None]]  # scores (n, K) and their labels (n,), where these are known


@dataclass(frozen=True)
class Written:
    """What is to be written: how many rows of what; labels are class indices."""

    kind: Kind
    examples: int
    classes: int
    class_names: Sequence[str] | None
    double: bool
    labelled: bool

    @property
    def number(self) -> np.dtype[np.generic]:
        """The precision of scores."""
        return np.dtype("<f8" if self.double else "<f4")

    def blocks(self, rows: Rows, labels: list[bytes]) -> Iterator[bytes]:
        """The bytes of scores, block by block; those of labels are gathered on the way."""
        for scores, some in rows:
            if some is not None:
                labels.append(some.numpy().astype("<i8").tobytes())
            yield np.ascontiguousarray(scores.numpy(), dtype=self.number).tobytes()


def refuse_existing(path: Path, overwrite: bool) -> None:
    """Refuse to write over a file, unless somebody said so, and to write what no ending stands for."""
    if path.suffix.lower() not in WRITERS:
        ends = f"ends in '{path.suffix}'" if path.suffix else "has no ending"
        raise SofttargetsError(f"{path} {ends}; predictions are written as one of {', '.join(WRITERS)}")
    refuse_replacing(path, overwrite)


def refuse_replacing(path: Path, overwrite: bool) -> None:
    """Refuse to write over a file, unless somebody said so."""
    if path.is_dir() or (path.exists() and not overwrite):
        what = "is a directory" if path.is_dir() else "exists already"
        raise SofttargetsError(f"{path} {what}; choose another name, or use --overwrite for a file")


def write_predictions(path: Path, what: Written, rows: Rows, *, overwrite: bool = False) -> None:
    """Write scores and labels, by the ending of the name: .npz, .safetensors, .csv or .tsv.

    The file takes its place only when it is complete. Of arrays, one chunk of scores is in memory and all labels.

    >>> import tempfile, torch
    >>> from softtargets.predictions import open_predictions
    >>> what = Written("logits", 2, 3, None, double=False, labelled=True)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "a.npz")
    ...     write_predictions(path, what, [(torch.eye(3)[:2] * 4, torch.tensor([0, 2]))])
    ...     print(open_predictions(path))
    Predictions(2 examples, 3 classes, logits, scores 'logits' (2, 3) float32 of a.npz, labels 'labels')
    """
    refuse_existing(path, overwrite)
    with replacing(path) as file:
        WRITERS[path.suffix.lower()](file, what, rows)


def _npz(file: BinaryIO, what: Written, rows: Rows) -> None:
    labels: list[bytes] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        shape = (what.examples, what.classes)
        _member(archive, what.kind, what.number, shape, what.blocks(rows, labels))
        if what.labelled:
            _member(archive, "labels", np.dtype("<i8"), shape[:1], labels)


def _member(
    archive: zipfile.ZipFile,
    name: str,
    kind: np.dtype[np.generic],
    shape: tuple[int, ...],
    blocks: Iterable[bytes],
) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        header = {"descr": kind.str, "fortran_order": False, "shape": shape}
        numpy_format.write_array_header_1_0(member, header)  # type: ignore[no-untyped-call, unused-ignore]
        for block in blocks:
            member.write(block)


def _safetensors(file: BinaryIO, what: Written, rows: Rows) -> None:
    size = what.examples * what.classes * what.number.itemsize
    scores = {
        "dtype": "F64" if what.double else "F32",
        "shape": [what.examples, what.classes],
        "data_offsets": [0, size],
    }
    header: dict[str, object] = {what.kind: scores}
    if what.labelled:
        ends = [size, size + 8 * what.examples]
        header["labels"] = {"dtype": "I64", "shape": [what.examples], "data_offsets": ends}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    labels: list[bytes] = []
    file.writelines(what.blocks(rows, labels))
    file.writelines(labels)


def _table(file: BinaryIO, what: Written, rows: Rows, delimiter: str) -> None:
    names = list(what.class_names or map(str, range(what.classes)))
    prefix = "logit" if what.kind == "logits" else "prob"
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    table = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    table.writerow([*(f"{prefix}_{name}" for name in names), *(["label"] if what.labelled else [])])
    digits = ".17g" if what.double else ".9g"
    for scores, labels in rows:
        called = [[names[label]] for label in labels.tolist()] if labels is not None else [[]] * len(scores)
        for row, label in zip(scores.tolist(), called, strict=True):
            table.writerow([*(format(value, digits) for value in row), *label])
    text.detach()


WRITERS: dict[str, Callable[[BinaryIO, Written, Rows], None]] = {
    ".npz": _npz,
    ".safetensors": _safetensors,
    ".csv": lambda file, what, rows: _table(file, what, rows, ","),
    ".tsv": lambda file, what, rows: _table(file, what, rows, "\t"),
}
