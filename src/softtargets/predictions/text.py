"""Tables in text files, comma- or tab-separated, read in blocks of whole lines.

Opening goes through the file once to find where blocks begin, at about the speed of the disk. A block is then turned
into numbers by numpy's parser, and only if that fails looked at cell by cell, to say which is wrong.
"""

from __future__ import annotations

import csv
import io
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.predictions.errors import FoundFile, PredictionFileError, reading
from softtargets.predictions.table import Codes, Table

BLOCK = 1 << 22
LONGEST = 1 << 26  # bytes of a line
LOOK = 200  # rows that decide what is in a column


class _Block(NamedTuple):
    offset: int
    size: int
    row: int  # its first row
    line: int  # its first line, from 1


class TextTable(Table):
    """A .csv or .tsv file. A header is needed for names; without one, columns are called 0, 1, 2, ..."""

    def __init__(self, file: FoundFile) -> None:
        self.path = file.path
        self._check_beginning()
        first = self._first_line()
        self._delimiter = "\t" if self.path.suffix.lower() == ".tsv" else _delimiter(first)
        self._name_columns(next(self._cells(first), []))
        self._index = self._scan(skip=len(first) if self.header else 0)
        if not self.rows:
            raise self.refused("has no rows after its header", "save the predictions again")
        self._look = self._first_rows()
        self.kinds = {name: self._kind(place) for place, name in enumerate(self.names)}

    def _name_columns(self, cells: list[str]) -> None:
        plain = tuple(cell.strip() for cell in cells)
        numbers = tuple(str(n) for n in range(len(cells)))
        # Pandas calls unnamed columns 0, 1, 2, ..., and nobody has that as an example.
        numbered = len(plain) > 1 and plain == numbers
        self.header = numbered or not all(map(_is_number, plain))
        self.names = plain if self.header else numbers
        # Tables of 100,000 classes exist: nothing may go through all names for each of them.
        self._places = {name: place for place, name in enumerate(self.names)}
        if len(self._places) < len(self.names):
            twice = Counter(self.names).most_common(1)[0][0]
            raise self.refused(f"has two columns named '{twice}'", "rename one in its first line")
        self.named = self.header and not numbered
        self.note = "" if self.header else "without a header, so columns are called 0, 1, 2, ..."

    def blocks(
        self, columns: Sequence[str], rows: int, start: int, codes: Mapping[str, Codes]
    ) -> Iterator[Tensor]:
        """Numbers of some columns; `rows` does not matter, blocks are as large as they are."""
        wanted = [self._places[column] for column in columns]
        texts = {self._places[column]: of for column, of in codes.items()}
        number = max(0, bisect_right(self._index, start, key=lambda block: block.row) - 1)
        with reading(self.path), open(self.path, "rb") as file:
            for block in self._index[number:]:
                found = self._parse(block, self._read(file, block), wanted, texts)
                yield torch.from_numpy(found[max(0, start - block.row) :])

    def place(self, row: int) -> str:
        """The line of the file, from 1, as editors count."""
        block = self._index[bisect_right(self._index, row, key=lambda block: block.row) - 1]
        with reading(self.path), open(self.path, "rb") as file:
            text = self._read(file, block)
        rows = islice(self._numbered_rows(block, text), row - block.row, None)
        return f"line {next(rows, (block.line, []))[0]}"

    def decimals(self, columns: Sequence[str]) -> int | None:
        """The most digits after the point among the first rows, unless one has an exponent or more than 6."""
        places = [self._places[column] for column in columns]
        most = 0
        for row in self._look:
            for place in places:
                match = re.fullmatch(r"\s*[-+]?\d*(?:\.(\d*))?\s*", row[place]) if place < len(row) else None
                if match is None:
                    return None
                most = max(most, len(match[1] or ""))
        return most if most <= 6 else None

    def decimal_comma(self) -> tuple[str, str] | None:
        """Of the first rows, as they are written where the comma stands for the point."""
        for row in self._look:
            for name, cell in zip(self.names, row, strict=False):
                if re.fullmatch(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*", cell):
                    return name, cell.strip()
        return None

    def _check_beginning(self) -> None:
        with reading(self.path), open(self.path, "rb") as file:
            start = file.read(4096)
        if b"\0" in start:
            raise self.refused("is not text in UTF-8: it has zero bytes", "save it as plain CSV in UTF-8")
        if b"\r" in start and b"\n" not in start and len(start) > start.index(b"\r") + 1:
            raise self.refused("ends its lines with carriage returns only", "save it with line feeds")

    def _first_line(self) -> bytes:
        """All up to the first row's end, byte-order mark and blank lines included."""
        with reading(self.path), open(self.path, "rb") as file:
            lines: list[bytes] = []
            size, quotes, blank = 0, 0, True
            while size < LONGEST:
                line = file.readline(LONGEST)
                lines.append(line)
                size, quotes = size + len(line), quotes + line.count(b'"')
                blank = blank and not line.strip(b"\xef\xbb\xbf \r\n")
                if not line and quotes % 2:
                    raise self._unclosed(1)
                if not line or not (blank or quotes % 2):
                    return b"".join(lines)
        raise self._too_long(0)

    def _scan(self, skip: int) -> list[_Block]:
        found: list[_Block] = []
        offset, self.rows = skip, 0
        with reading(self.path), open(self.path, "rb") as file:
            line = 1 + file.read(skip).count(b"\n")
            for text in self._whole_lines(file):
                if text.count(b'"') % 2:
                    raise self._unclosed(line)
                if count := self._count(text):  # not blank lines alone
                    found.append(_Block(offset, len(text), self.rows, line))
                offset, line = offset + len(text), line + text.count(b"\n")
                self.rows += count
        return found

    def _whole_lines(self, file: BinaryIO) -> Iterator[bytes]:
        held = b""
        while fresh := file.read(BLOCK):
            held += fresh
            if cut := _cut(held):
                yield held[:cut]
                held = held[cut:]
            elif len(held) > LONGEST:
                raise self._too_long(self.rows)
        if held:
            yield held

    def _unclosed(self, line: int) -> PredictionFileError:
        return self.refused(
            f"has a quote in or after line {line} that is never closed", "it may be cut off; save it again"
        )

    def _too_long(self, row: int) -> PredictionFileError:
        return self.refused(
            f"has a line of more than {LONGEST >> 20} MiB after row {row}, or a quote that is never closed",
            "check that it is a table",
        )

    def _count(self, text: bytes) -> int:
        if b'"' in text:
            return sum(map(bool, self._cells(text)))
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        if b"\n\n" in text or b"\n\r\n" in text or text[:1] in (b"\n", b"\r"):
            lines = sum(1 for line in text.split(b"\n") if line.rstrip(b"\r"))
        return lines

    def _cells(self, text: bytes) -> Iterator[list[str]]:
        return (cells for _, cells in self._lines(self._decode(text)))

    def _lines(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Cells of a row after another, and how many lines there are up to its end."""
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter)
        try:
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as problem:  # a cell of more than 131,072 characters, for one
            raise self.refused(
                f"has a cell that cannot be read ({problem})", "leave out columns of long texts"
            ) from None

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode("utf-8").removeprefix("\ufeff").lstrip("\r\n")
        except UnicodeDecodeError as problem:
            byte = text[problem.start]
            raise self.refused(
                f"is not text in UTF-8: it has a byte {byte:#04x}", "save it as CSV in UTF-8"
            ) from None

    def _read(self, file: BinaryIO, block: _Block) -> bytes:
        file.seek(block.offset)
        text = file.read(block.size)
        if len(text) < block.size:
            raise self.refused("became shorter while it was being read", "try again")
        return text

    def _first_rows(self) -> list[list[str]]:
        with reading(self.path), open(self.path, "rb") as file:
            text = self._read(file, self._index[0])
        return list(islice(filter(None, self._cells(text)), LOOK))

    def _kind(self, place: int) -> str:
        # Empty cells and a few that are none do not make a class disappear: they are refused when they are reached.
        filled = [cell for row in self._look if place < len(row) and (cell := row[place].strip())]
        return "number" if filled and sum(map(_is_number, filled)) >= len(filled) / 2 else "text"

    def _parse(
        self, block: _Block, text: bytes, wanted: list[int], texts: Mapping[int, Codes]
    ) -> NDArray[np.float64]:
        unwanted = set(range(len(self.names))).difference(wanted)
        converters: dict[int | str, Callable[[str], float]] = dict.fromkeys(unwanted, lambda cell: math.nan)
        converters |= {place: partial(_coded, of) for place, of in texts.items()}
        try:
            found: NDArray[np.float64] = np.loadtxt(
                io.StringIO(self._decode(text), newline=""),
                delimiter=self._delimiter,
                comments=None,
                quotechar='"',
                ndmin=2,
                encoding=None,
                converters=converters or None,
            )
        except (ValueError, KeyError):
            self._explain(block, text, wanted, texts)
        if found.shape[1] != len(self.names) or len(found) != self._count(text):
            self._explain(block, text, wanted, texts)
        if wanted != list(range(len(self.names))):
            found = found[:, wanted]
        return found

    def _explain(self, block: _Block, text: bytes, wanted: list[int], texts: Mapping[int, Codes]) -> NoReturn:
        """Say which cell of a block is wrong."""
        for line, cells in self._numbered_rows(block, text):
            if len(cells) != len(self.names):
                raise self.refused(
                    f"has {len(cells)} cells in line {line}, but {len(self.names)} columns",
                    "it may be cut off or have a delimiter in a cell without quotes",
                )
            for place in wanted:
                cell, name, of = cells[place].strip(), self.names[place], texts.get(place)
                if of is not None and cell not in of:
                    raise self.no_class(cell, f"line {line}", name, of)
                if of is None and not _is_number(cell):
                    raise self.refused(
                        f"has '{cell[:40]}' in line {line}, column '{name}'",
                        "each cell of this column must be a number, with a point for decimals",
                    )
        raise self.refused(
            f"has a cell in or after line {block.line} that cannot be read", "save it as plain CSV in UTF-8"
        )

    def _numbered_rows(self, block: _Block, text: bytes) -> Iterator[tuple[int, list[str]]]:
        """The rows of a block and their lines; cells may have line breaks in quotes, and lines may be blank."""
        decoded = self._decode(text)
        line = block.line + text.count(b"\n") - decoded.count("\n")  # without blank ones at the beginning
        before = 0
        for after, cells in self._lines(decoded):
            if cells:
                yield line + before, cells
            before = after


def _cut(text: bytes) -> int:
    """After the last line break that is not within quotes; 0 if there is none."""
    cut = text.rfind(b"\n") + 1
    quotes = text.count(b'"', 0, cut)
    while cut and quotes % 2:
        # Within quotes: on to the last line break before they begin. Every byte is looked at once.
        begin = text.rfind(b'"', 0, cut)
        cut = text.rfind(b"\n", 0, begin) + 1
        quotes -= 1 + text.count(b'"', cut, begin)
    return cut


def _delimiter(line: bytes) -> str:
    """The one of comma, tab and semicolon that is most frequent in the first line."""
    return max((",", "\t", ";"), key=lambda one: line.count(one.encode()))


def _is_number(cell: str) -> bool:
    if "_" in cell:  # Python reads 1_000 as a number; no table means that
        return False
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _coded(codes: Codes, cell: str) -> float:
    """The number of a class by its name; one that is none is an error of the parser."""
    return float(codes[cell.strip()])
