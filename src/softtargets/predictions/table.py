"""Files with named columns: text and parquet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from softtargets.predictions.array import FileArray, rechunk
from softtargets.predictions.errors import InFile, PredictionFileError, listed

Codes = Mapping[str, int]  # the number of a class for each text that stands for it
ONE_SCORE = {
    "0": 0,
    "1": 1,
    "False": 0,
    "True": 1,
    "false": 0,
    "true": 1,
}  # where there is one score, that of class 1


class Table(InFile, ABC):
    """Columns of the same length. `kinds` says for each "number", "text" or "other"."""

    names: tuple[str, ...]
    kinds: dict[str, str]
    rows: int
    seekable: bool = True  # whether reading from any row on is quick
    named: bool = True  # whether names of columns mean anything
    note: str = ""  # what a reader should know about how the file was taken

    def no_class(self, text: str, place: str, column: str, codes: Codes) -> PredictionFileError:
        """What to say of a label that stands for no class."""
        if set(codes) == set(ONE_SCORE):
            return self.refused(
                f"has the label '{text[:40]}' in {place}, column '{column}', and one score for each example",
                "one score is that of class 1, and nothing here says which class that is: write the labels as 1 where "
                "it applies and 0 where not",
            )
        advice = f"the classes are {listed(codes)}"
        if text and not text.isdigit() and all(name.isdigit() for name in codes):
            advice += ", as the columns of scores are named: name these like the labels"
        return self.refused(f"has '{text[:40]}' in {place}, column '{column}'", advice)

    @abstractmethod
    def blocks(
        self, columns: Sequence[str], rows: int, start: int, codes: Mapping[str, Codes]
    ) -> Iterator[Tensor]:
        """Columns side by side as float64, from row `start` on, about `rows` at a time; texts by their `codes`."""

    def place(self, row: int) -> str:
        """Where a row is, in words."""
        return f"row {row}"

    def decimals(self, columns: Sequence[str]) -> int | None:
        """To how many digits after the point these columns are rounded; None: they are not."""
        return None

    def decimal_comma(self) -> tuple[str, str] | None:
        """A column with numbers such as 0,5, and one of them; None: there is none."""
        return None

    def array(self, name: str) -> FileArray:
        """One column as an array."""
        return TableArray(self, (name,), flat=True)


class TableArray(FileArray):
    """Columns of a table as an array (rows, columns), or (rows,) if there is one and it is `flat`."""

    def __init__(
        self, table: Table, columns: Sequence[str], flat: bool = False, codes: Codes | None = None
    ) -> None:
        self.table, self.columns = table, tuple(columns)
        self.codes = {} if codes is None else {columns[0]: codes}
        self.path, self.flat, self.seekable = table.path, flat, table.seekable
        self.name = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
        self.shape = (table.rows,) if flat else (table.rows, len(columns))
        kinds = {table.kinds[column] for column in columns}
        plain = codes is not None or kinds == {"number"}
        self.dtype = "float64" if plain else "text" if "text" in kinds else "other"

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Columns side by side."""
        if self.dtype != "float64":
            raise self.refused(f"has no numbers in the column '{self.name}'")
        found = rechunk(self.table.blocks(self.columns, rows, start, self.codes), rows)
        return (block[:, 0] for block in found) if self.flat else found

    def decimals(self) -> int | None:
        """Of the columns together."""
        return self.table.decimals(self.columns)

    def place(self, row: int) -> str:
        """As the table says it."""
        return self.table.place(row)


class Stacked(FileArray):
    """One-dimensional arrays side by side, such as the fields of records."""

    def __init__(self, columns: Sequence[FileArray]) -> None:
        self._columns = tuple(columns)
        self.path = columns[0].path
        self.name = f"{columns[0].name} to {columns[-1].name}" if len(columns) > 1 else columns[0].name
        self.shape = (columns[0].shape[0], len(columns))
        self.dtype = "float64"
        self.seekable = all(column.seekable for column in columns)

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Columns side by side, as float64."""
        streams = [column.blocks(rows, start) for column in self._columns]
        for parts in zip(*streams, strict=True):
            yield torch.stack([part.double() for part in parts], 1)


def read_together(
    scores: FileArray, labels: FileArray, rows: int, start: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of two arrays side by side; columns of one table are read in one go."""
    if isinstance(scores, TableArray) and isinstance(labels, TableArray) and scores.table is labels.table:
        columns = (*scores.columns, *labels.columns)
        width = len(scores.columns)
        for block in rechunk(scores.table.blocks(columns, rows, start, labels.codes), rows):
            yield block[:, :width], block[:, width] if labels.flat else block[:, width:]
    else:
        yield from zip(scores.blocks(rows, start), labels.blocks(rows, start), strict=True)
