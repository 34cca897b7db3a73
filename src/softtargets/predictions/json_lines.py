"""Lines of JSON: an object per example, or an object per sentence with a list for its tokens."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from softtargets.predictions.errors import FoundFile, listed, reading
from softtargets.predictions.table import Codes, Table

BLOCK = 1 << 22
LONGEST = 1 << 26  # bytes of a line
LOOK = 200  # lines that decide what is in a column


class _Block(NamedTuple):
    offset: int
    size: int
    row: int  # its first row
    line: int  # its first line, from 1


class JsonLines(Table):
    """A .jsonl file whose lines are objects with the same fields: numbers, true and false, texts, or lists of these.

    Where fields are lists, as with the tokens of a sentence, each element is a row, and the lists of a line have one
    length; fields with one value for the whole line are then not used. Where one field alone is a list, beside others
    that are not, as long in each line and not of whole numbers only (unless they are a 1 among zeros), a line is an
    example with all of its scores: ``{"probs": [0.1, 0.9], "label": 1}`` has the columns probs0, probs1 and label. An
    object with a number for each class does the same: ``{"probs": {"cat": 0.1, "dog": 0.9}, "label": "dog"}`` has
    probs.cat and probs.dog. Opening goes through the file once to count the rows.
    """

    def __init__(self, file: FoundFile) -> None:
        self.path = file.path
        self._spread: tuple[str, int] | None = None
        self._classes: tuple[str, tuple[str, ...]] | None = None
        look = self._first_objects()
        self._spread = self._one_list(look)
        self._classes = self._one_object(look)
        look = [self._whole(one, line) for line, one in enumerate(look, 1)]
        self._lists = any(isinstance(value, list) for one in look for value in one.values())
        fields = list(dict.fromkeys(name for one in look for name in one))
        self.names = tuple(name for name in fields if not self._lists or self._is_list(look, name))
        self.kinds = {name: _kind(self._values(look, name)) for name in self.names}
        unused = [name for name in fields if name not in self.kinds]
        self.note = "each element of a list is a row" if self._lists else ""
        if self._spread:
            self.note = (
                f"each line is a row, and '{self._spread[0]}' has the scores of {self._spread[1]} classes"
            )
        if self._classes:
            self.note = (
                f"'{self._classes[0]}' has the scores of {len(self._classes[1])} classes by their names"
            )
        if unused:
            self.note += f"; fields with a single value for all of them are not used: {listed(unused)}"
        self._index = list(self._scan())
        if not self.rows:
            raise self.refused("has no rows", "save the predictions again")

    def blocks(
        self, columns: Sequence[str], rows: int, start: int, codes: Mapping[str, Codes]
    ) -> Iterator[Tensor]:
        """Numbers of some columns; `rows` does not matter, blocks are as large as they are."""
        number = max(0, bisect_right(self._index, start, key=lambda block: block.row) - 1)
        with reading(self.path), open(self.path, "rb") as file:
            for block in self._index[number:]:
                found = [
                    [self._number(cell, name, line, codes) for cell, name in zip(cells, columns, strict=True)]
                    for line, one in self._objects(file, block)
                    for cells in self._cells(one, columns, line)
                ]
                table = torch.tensor(found, dtype=torch.float64).reshape(-1, len(columns))
                yield table[max(0, start - block.row) :]

    def place(self, row: int) -> str:
        """The line of the file, from 1, and the element of its lists, from 0."""
        block = self._index[bisect_right(self._index, row, key=lambda block: block.row) - 1]
        before = block.row
        with reading(self.path), open(self.path, "rb") as file:
            for line, one in self._objects(file, block):
                count = self._count(one, line)
                if row < before + count:
                    return f"line {line}, element {row - before}" if self._lists else f"line {line}"
                before += count
        return f"row {row}"

    def _first_objects(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        with reading(self.path), open(self.path, "rb") as file:
            for number in range(1, LOOK + 1):
                text = file.readline(LONGEST)
                if not text:
                    break
                if text.strip():
                    found.append(self._object(text, number))
        if not found:
            raise self.refused("has no rows", "save the predictions again")
        return found

    def _scan(self) -> Iterator[_Block]:
        self.rows = offset = size = count = 0
        line = first = 1
        with reading(self.path), open(self.path, "rb") as file:
            while text := file.readline(LONGEST):
                if len(text) == LONGEST and not text.endswith(b"\n"):
                    raise self.refused(
                        f"has more than {LONGEST >> 20} MiB in line {line}", "write a line per sentence"
                    )
                if text.strip():
                    count += self._count(self._object(text, line), line)
                size, line = size + len(text), line + 1
                if size >= BLOCK:
                    yield _Block(offset, size, self.rows, first)
                    self.rows += count
                    offset, size, count, first = offset + size, 0, 0, line
            if size:
                yield _Block(offset, size, self.rows, first)
                self.rows += count

    def _objects(self, file: BinaryIO, block: _Block) -> Iterator[tuple[int, dict[str, Any]]]:
        file.seek(block.offset)
        text = file.read(block.size)
        if len(text) < block.size:
            raise self.refused("became shorter while it was being read", "try again")
        for line, one in enumerate(text.split(b"\n"), block.line):
            if one.strip():
                yield line, self._object(one, line)

    def _object(self, text: bytes, line: int) -> dict[str, Any]:
        try:
            found = json.loads(text.decode("utf-8-sig"))
        except (ValueError, RecursionError) as problem:
            reason = str(problem)[:80] or type(problem).__name__
            raise self.refused(
                f"has something in line {line} that is not JSON ({reason})", "write one object per line"
            ) from None
        if not isinstance(found, dict):
            raise self.refused(
                f"has a {type(found).__name__} in line {line}, not an object",
                'each line must be like {"confidence": 0.9, "correct": true}',
            )
        return self._whole(found, line)

    def _one_list(self, look: Sequence[Mapping[str, Any]]) -> tuple[str, int] | None:
        """The field that has all scores of an example, and how many; None where lists are tokens, or there are none."""
        lists = {name for one in look for name, value in one.items() if isinstance(value, list)}
        plain = all(any(not isinstance(value, list) for value in one.values()) for one in look)
        if len(lists) != 1 or not plain:
            return None
        name = lists.pop()
        lengths = {len(one[name]) if isinstance(one.get(name), list) else 0 for one in look}
        if len(lengths) > 1 or min(lengths) < 2:
            return None
        # Whole numbers, texts and lists are tokens' own, in sentences of one length; but where each line has a single 1
        # among zeros they are the probabilities of a model that is always certain.
        fractions = any(isinstance(value, float) for one in look for value in one[name])
        certain = all(sorted(map(str, one[name])) == ["0"] * (len(one[name]) - 1) + ["1"] for one in look)
        return (name, lengths.pop()) if fractions or certain else None

    @staticmethod
    def _one_object(look: Sequence[Mapping[str, Any]]) -> tuple[str, tuple[str, ...]] | None:
        """The field that has the scores of an example by their classes, and these; None where there is none."""
        inner = {name for one in look for name, value in one.items() if isinstance(value, list | dict)}
        name = inner.pop() if len(inner) == 1 else ""
        found = [one.get(name) for one in look]
        first = found[0]
        if not isinstance(first, dict) or len(first) < 2:
            return None
        alike = all(isinstance(one, dict) and one.keys() == first.keys() for one in found)
        numbers = all(isinstance(value, int | float) for one in found if one for value in one.values())
        return (name, tuple(first)) if alike and numbers else None

    def _whole(self, one: dict[str, Any], line: int) -> dict[str, Any]:
        """A line whose scores are in one list or object, with a field for each of them."""
        if self._classes is not None:
            return self._by_class(one, line, *self._classes)
        if self._spread is None:
            return one
        name, count = self._spread
        scores = one.get(name)
        if not isinstance(scores, list) or len(scores) != count:
            has = f"{len(scores)} scores" if isinstance(scores, list) else "no list"
            raise self.refused(
                f"has {has} in '{name}' of line {line}, but {count} in the lines before",
                "write as many in every line",
            )
        rest = {other: value for other, value in one.items() if other != name}
        return {f"{name}{place}": score for place, score in enumerate(scores)} | rest

    def _by_class(
        self, one: dict[str, Any], line: int, name: str, classes: tuple[str, ...]
    ) -> dict[str, Any]:
        scores = one.get(name)
        if not isinstance(scores, dict) or scores.keys() != set(classes):
            raise self.refused(
                f"has other classes in '{name}' of line {line} than in the lines before",
                f"every line must have a number for each of {listed(classes)}",
            )
        rest = {other: value for other, value in one.items() if other != name}
        return {f"{name}.{place}": scores[place] for place in classes} | rest

    def _count(self, one: Mapping[str, Any], line: int) -> int:
        if not self._lists:
            return 1
        lengths = {name: len(value) for name in self.names if isinstance(value := one.get(name), list)}
        if len(lengths) < len(self.names) or len(set(lengths.values())) > 1:
            told = lengths or "none"
            raise self.refused(
                f"has lists of different lengths in line {line}: {told}", "write one value per token"
            )
        return next(iter(lengths.values()))

    def _cells(self, one: Mapping[str, Any], columns: Sequence[str], line: int) -> Iterator[tuple[Any, ...]]:
        if missing := [name for name in columns if name not in one]:
            raise self.refused(
                f"has no '{missing[0]}' in line {line}", "every line must have the same fields"
            )
        if self._lists:
            self._count(one, line)
            yield from zip(*(one[name] for name in columns), strict=True)
        else:
            yield tuple(one[name] for name in columns)

    def _number(self, cell: Any, name: str, line: int, codes: Mapping[str, Codes]) -> float:
        if name in codes and isinstance(cell, str):
            if cell not in codes[name]:
                raise self.no_class(cell, f"line {line}", name, codes[name])
            return float(codes[name][cell])
        if not isinstance(cell, int | float):
            raise self.refused(
                f"has {json.dumps(cell)[:40]} in line {line}, field '{name}'",
                "each value of this field must be a number",
            )
        try:
            return float(cell)
        except OverflowError:
            raise self.refused(f"has a number that is too large in line {line}, field '{name}'") from None

    @staticmethod
    def _is_list(look: Sequence[Mapping[str, Any]], name: str) -> bool:
        return any(isinstance(one.get(name), list) for one in look)

    @staticmethod
    def _values(look: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
        cells = [one[name] for one in look if name in one]
        return [cell for one in cells for cell in (one if isinstance(one, list) else [one])][:LOOK]


def _kind(values: Sequence[Any]) -> str:
    # A few that are none do not make a column disappear: they are refused when they are reached.
    numbers = sum(isinstance(value, int | float) for value in values)
    if values and numbers >= len(values) / 2:
        return "number"
    return "text" if any(isinstance(value, str) for value in values) else "other"
