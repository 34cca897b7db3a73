"""What a page is made of. Plain data: rendering is elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from softtargets.claims import Claim, Sample
from softtargets.report.drawing import Drawing
from softtargets.report.numbers import number


@dataclass(frozen=True)
class Column:
    """A column of a table: its key in files, its heading on the page, and how numbers are written."""

    key: str
    heading: str
    digits: int = 3
    percent: bool = False

    def show(self, value: Any) -> str:
        """A cell as a person reads it: ``0.912``, ``91.2 %``, ``91.2 ± 0.4 %``, ``–`` where there is no number."""
        if isinstance(value, Sample) and not math.isnan(value.spread):
            return f"{self._number(value.mean)} ± {self._number(value.spread)}{self._unit}"
        return self._plain(value.mean if isinstance(value, Sample) else value)

    def _plain(self, value: Any) -> str:
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return "–"
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return str(value)
        if isinstance(value, int) and not self.percent:
            return f"{value:,}".replace("-", "−")
        return self._number(value) + self._unit

    @property
    def _unit(self) -> str:
        return " %" if self.percent else ""

    def _number(self, value: float) -> str:
        if math.isinf(value):
            return "∞" if value > 0 else "−∞"
        return number(100 * value, max(self.digits - 2, 0)) if self.percent else number(value, self.digits)


_COLUMN = re.compile(r"(?P<key>\w+)(?: \.(?P<places>\d)(?P<kind>[f%]))?(?:: (?P<heading>.+))?")


def columns(spec: str) -> tuple[Column, ...]:
    """The columns of a table in one line: ``key .2f: heading | key .1% | key``.

    The number format is Python's, ``.3f`` unless told; the heading is the key in words unless told.

    >>> [column.heading for column in columns("alpha .2f | test_error .2% | nll: NLL")]
    ['alpha', 'test error', 'NLL']
    >>> columns("test_error .2%")[0].show(0.0074)
    '0.74 %'
    """
    return tuple(_column(part.strip()) for part in spec.split("|"))


def _column(part: str) -> Column:
    found = _COLUMN.fullmatch(part)
    if not found:
        raise ValueError(f"a column is written 'key .2f: heading' or 'key .1%: heading'; got {part!r}")
    key, percent = found["key"], found["kind"] == "%"
    digits = 3 if found["places"] is None else int(found["places"]) + 2 * percent
    return Column(key, found["heading"] or key.replace("_", " "), digits, percent)


@dataclass(frozen=True)
class Table:
    """Rows of values. A `Sample` in a cell is shown as mean and spread and written out in full to files."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Any], ...]
    caption: str = ""

    @classmethod
    def of(
        cls, name: str, title: str, spec: str, rows: Iterable[Mapping[str, Any]], caption: str = ""
    ) -> Table:
        """A table with its `columns` in one line."""
        return cls(name, title, columns(spec), tuple(rows), caption)


@dataclass(frozen=True)
class Widget:
    """A figure a reader can turn and ask: one of the kinds in `softtargets.report.widgets`, and its numbers."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Figure:
    """A picture and the numbers it shows. `draw` makes it; `alt` says in words what it shows.

    With a `widget` the page shows that in the picture's place; in print and without scripts the picture is there.
    """

    name: str
    title: str
    draw: Callable[[], Drawing]
    data: Table
    caption: str = ""
    alt: str = ""
    widget: Widget | None = None

    @classmethod
    def of(
        cls,
        name: str,
        title: str,
        draw: Callable[[], Drawing],
        rows: Iterable[Mapping[str, Any]],
        caption: str = "",
        alt: str = "",
        *,
        table: str = "",
        widget: Widget | None = None,
    ) -> Figure:
        """A figure whose numbers go to files only, under their keys, and are not shown as a table.

        The file of numbers is called `table`, if not like the figure.
        """
        rows = tuple(rows)
        keys = dict.fromkeys(key for row in rows for key in row)
        shown = tuple(Column(key, key.replace("_", " ")) for key in keys)
        return cls(name, title, draw, Table(table or name, title, shown, rows), caption, alt, widget)


@dataclass(frozen=True)
class Code:
    """Lines to copy: ``probabilities = (logits / 1.37).softmax(-1)``."""

    text: str
    language: str = "python"
    title: str = ""


Exhibit = Table | Figure | Code


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs and exhibits in reading order."""

    title: str
    paragraphs: tuple[str, ...] = ()
    exhibits: tuple[Exhibit, ...] = ()

    @classmethod
    def of(cls, title: str, *content: str | Exhibit) -> Section:
        """Texts are paragraphs, empty ones left out; the rest stands below them.

        >>> Section.of("Accuracy", "It rises.", "").paragraphs
        ('It rises.',)
        """
        texts = tuple(item for item in content if isinstance(item, str) and item)
        return cls(title, texts, tuple(item for item in content if not isinstance(item, str)))


Tone = Literal["good", "care", "bad", "plain"]


@dataclass(frozen=True)
class Verdict:
    """What a reader in a hurry takes away: is it good, in one line, and what to do about it; plain is a neutral fact.

    >>> Verdict("fine", "Well calibrated")
    Traceback (most recent call last):
        ...
    ValueError: the tone of a verdict must be one of good, care, bad, plain; got 'fine'
    """

    tone: Tone
    headline: str
    sentences: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        tones = get_args(Tone)
        if self.tone not in tones:
            raise ValueError(f"the tone of a verdict must be one of {', '.join(tones)}; got {self.tone!r}")


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything a report says about one thing: a study, or a file of predictions (then `kind` is the command).

    `answer` is the title's question answered in a plain sentence; `papers` are citations that end in their address.
    `command` and `provenance` say how it came about, which the command knows that writes it. `runs` is the long table
    behind the page, folded away at its end. `kept` is what a study's page can be made of again, beside its runs.
    """

    name: str
    title: str
    lead: str
    sections: tuple[Section, ...]
    claims: tuple[Claim, ...] = ()
    command: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    runs: Table | None = None
    warnings: Sequence[str] = field(default=())
    kind: str = "study"
    verdict: Verdict | None = None
    answer: str = ""
    papers: Sequence[str] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table of the page: its own, those behind its figures, and that of its runs."""
        exhibits = (one for section in self.sections for one in section.exhibits if not isinstance(one, Code))
        found = tuple(one.data if isinstance(one, Figure) else one for one in exhibits)
        return (*found, self.runs) if self.runs else found
