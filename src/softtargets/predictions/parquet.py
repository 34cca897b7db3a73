"""Tables in parquet files, read with pyarrow, which is optional."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, FileArray, rechunk
from softtargets.predictions.errors import FoundFile, reading
from softtargets.predictions.table import Codes, Table

LIST_TYPES = {"halffloat": "float16", "float": "float32", "double": "float64"}
LIST_TYPES |= {name: name for name in ("int64", "int32", "int16", "int8", "uint8")}
METADATA_BYTES = 1 << 24  # 1000 columns in 100 row groups take about 10 MB
SAFE = (14, 0, 1)  # older ones execute what a file's schema says (CVE-2023-47248)


class ParquetTable(Table):
    """A .parquet file: columns of numbers and texts, and lists of numbers of one length, one per example."""

    def __init__(self, file: FoundFile) -> None:
        self.path = file.path
        self._arrow = _pyarrow(file)
        self._refuse_metadata(file)
        with self._errors():
            opened = self._open()
            schema = opened.schema_arrow
            self.names = tuple(schema.names)
            self.rows = int(opened.metadata.num_rows)
            groups = (int(opened.metadata.row_group(n).num_rows) for n in range(opened.num_row_groups))
            self._ends = list(accumulate(groups))  # of row groups
            self.seekable = len(self._ends) > 1
            types = {field.name: field.type for field in schema}
        if len(types) < len(self.names):
            raise self.refused("has two columns with the same name", "rename one")
        self.kinds = {name: self._kind(kind) for name, kind in types.items()}
        found = {name: self._list_type(kind) for name, kind in types.items()}
        self.list_types = {name: dtype for name, dtype in found.items() if dtype}

    def blocks(
        self, columns: Sequence[str], rows: int, start: int, codes: Mapping[str, Codes]
    ) -> Iterator[Tensor]:
        """Numbers of some columns, from row groups one after another."""
        for first, batch in self._batches(columns, rows, start):
            found = np.empty((batch.num_rows, len(columns)))
            for place, column in enumerate(columns):
                values = batch.column(batch.schema.get_field_index(column))
                self._refuse_missing(values, column, first)
                of = codes.get(column)
                found[:, place] = self._coded(values, column, of, first) if of else self._numbers(values)
            yield torch.from_numpy(found)

    def array(self, name: str) -> FileArray:
        """A column; a list of numbers becomes (rows, length)."""
        return ListArray(self, name) if name in self.list_types else super().array(name)

    def lists(self, column: str, rows: int, start: int = 0) -> Iterator[Tensor]:
        """The lists of a column as (rows, length); all must have the length of the first."""
        width: int | None = None
        for first, batch in self._batches([column], rows, start):
            values = batch.column(0)
            self._refuse_missing(values, column, first)
            lengths = np.asarray(self._arrow.compute.list_value_length(values))
            width = int(lengths[0]) if width is None else width
            if (lengths != width).any():
                row = int(np.flatnonzero(lengths != width)[0])
                raise self.refused(
                    f"has {lengths[row]} numbers in row {first + row} of '{column}', but {width} in others",
                    "each example needs one for each class",
                )
            flat = values.flatten()
            self._refuse_missing(flat, column, first, width)
            found = np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(values), width)
            yield torch.from_numpy(found.copy())

    def _batches(self, columns: Sequence[str], rows: int, start: int) -> Iterator[tuple[int, Any]]:
        group = bisect_right(self._ends, start)
        first = self._ends[group - 1] if group else 0
        with self._errors():
            stream = self._open().iter_batches(
                batch_size=max(1, rows), row_groups=range(group, len(self._ends)), columns=list(columns)
            )
        while True:
            with self._errors():
                batch = next(stream, None)
            if batch is None:
                break
            if first + batch.num_rows > start:
                skip = max(0, start - first)
                yield first + skip, batch.slice(skip) if skip else batch
            first += batch.num_rows
        if first != self.rows:
            raise self.refused(f"has {first} rows, but claims {self.rows}", "it is damaged; save it again")

    def _refuse_metadata(self, file: FoundFile) -> None:
        """Pyarrow makes objects of all of it before anyone can look, some ten times as large."""
        with reading(self.path), open(self.path, "rb") as stream:
            stream.seek(max(0, file.size - 8))
            length = int.from_bytes(stream.read(4), "little")
        if METADATA_BYTES < length < file.size:
            raise self.refused(
                f"has {length >> 20} MiB of metadata, and at most {METADATA_BYTES >> 20} are read",
                "write it with larger row groups",
            )

    def _open(self) -> Any:
        # Small reads rather than whole column chunks: a row group may be larger than memory.
        file = self._arrow.parquet.ParquetFile
        return file(self.path, buffer_size=1 << 20, pre_buffer=False, memory_map=False)

    def _errors(self) -> Any:
        damage = (self._arrow.ArrowException, OSError, ValueError)
        return reading(self.path, *damage, problem="is damaged or no parquet file")

    def _list_type(self, kind: Any) -> str:
        """What torch calls the numbers of lists; empty where these are no lists of numbers."""
        types = self._arrow.types
        listed = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not (listed and (types.is_floating(kind.value_type) or types.is_integer(kind.value_type))):
            return ""
        return LIST_TYPES.get(str(kind.value_type), "other")

    def _kind(self, kind: Any) -> str:
        types = self._arrow.types
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
            return "number"
        return "text" if types.is_string(kind) or types.is_large_string(kind) else "other"

    def _refuse_missing(self, values: Any, column: str, first: int, width: int = 1) -> None:
        if values.null_count:
            row = int(np.flatnonzero(np.asarray(values.is_null()))[0]) // width
            raise self.refused(
                f"has no value in row {first + row} of '{column}'", "fill it or leave the row out"
            )

    def _numbers(self, values: Any) -> Any:
        if self._arrow.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return values.to_numpy(zero_copy_only=False).astype(np.float64)

    def _coded(self, values: Any, column: str, codes: Codes, first: int) -> list[int]:
        texts = [str(value).strip() for value in values.to_pylist()]
        for row, text in enumerate(texts):
            if text not in codes:
                raise self.no_class(text, f"row {first + row}", column, codes)
        return [codes[text] for text in texts]


class ListArray(FileArray):
    """A column of lists of one length."""

    def __init__(self, table: ParquetTable, name: str) -> None:
        self._table = table
        self.path, self.name, self.dtype = table.path, name, table.list_types[name]
        self.seekable = table.seekable
        first = next(table.lists(name, rows=1), torch.empty(0, 0))
        self.shape = (table.rows, first.shape[1])

    def blocks(self, rows: int, start: int = 0) -> Iterator[Tensor]:
        """Lists as rows."""
        if self.dtype == "other":
            raise self.refused(f"has lists of a type that cannot be read in '{self.name}'")
        # Arrow needs several times what a batch has.
        step = min(rows, max(1, BLOCK_BYTES // 8 // self.row_bytes))
        return rechunk(self._table.lists(self.name, step, start), rows)


def _pyarrow(file: FoundFile) -> Any:
    try:
        arrow = import_module("pyarrow")
        import_module("pyarrow.compute")
        import_module("pyarrow.parquet")
    except ImportError:
        raise file.refused("needs pyarrow to be read", "pip install pyarrow") from None
    numbers = tuple(int(part) if part.isdigit() else 0 for part in arrow.__version__.split(".")[:3])
    if numbers < SAFE:
        raise file.refused(
            f"is not read with pyarrow {arrow.__version__}, which executes code from files",
            "pip install -U pyarrow",
        )
    return arrow
