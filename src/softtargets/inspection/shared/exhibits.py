"""What the four pages show: tables, their columns written as one line, and blank paper for pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from softtargets.report import Column, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Drawing: TypeAlias = "Figure"  # matplotlib's, which takes a second to import


def table(name: str, title: str, columns: str, rows: Iterable[Mapping[str, Any]], caption: str = "") -> Table:
    """A table with columns of `columns_of`."""
    return Table(name, title, columns_of(columns), tuple(rows), caption)


def columns_of(text: str) -> tuple[Column, ...]:
    """Columns as ``key = heading : digits %``, separated by bars; a heading is the key if nothing else is said.

    >>> columns_of("class | mean_share : 4 % | shown = B − A")
    (Column(key='class', heading='class', digits=3, percent=False),
     Column(key='mean_share', heading='mean share', digits=4, percent=True),
     Column(key='shown', heading='B − A', digits=3, percent=False))
    """
    columns = []
    for part in filter(None, text.split("|")):
        named, _, written = part.partition(":")
        key, _, heading = (word.strip() for word in named.partition("="))
        digits = written.strip(" %")
        columns.append(Column(key, heading or key.replace("_", " "), int(digits or 3), "%" in written))
    return tuple(columns)


def canvas(width: float, height: float) -> Drawing:
    """A picture of so many inches whose parts do not overlap."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
