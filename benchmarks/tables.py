"""Results as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from benchmarks.results import BenchResults, CaseEntry, CaseResult, Timing
from benchmarks.text import NOTHING

Table = tuple[list[str], list[list[str]]]  # headings, rows
Row = TypeVar("Row")
E = TypeVar("E", bound=CaseEntry)
# A heading, and what a row has under it.
Column = tuple[str, Callable[[Row], str]]


def table(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Table:
    """Every row under every heading.

    >>> table([("n", str), ("square", lambda n: str(n * n))], [2, 3])
    (['n', 'square'], [['2', '4'], ['3', '9']])
    """
    return [heading for heading, _ in columns], [[show(row) for _, show in columns] for row in rows]


def attributes(paths: Mapping[str, str]) -> list[Column[Any]]:
    """Columns that show attributes as they are.

    >>> table(attributes({"whole": "numerator"}), [2, 3])
    (['whole'], [['2'], ['3']])
    """

    def shows(path: str) -> Callable[[Any], str]:
        get = attrgetter(path)
        return lambda row: str(get(row))

    return [(heading, shows(path)) for heading, path in paths.items()]


def each(
    names: Iterable[str], titles: Mapping[str, str], heading: str, show: Callable[[Any, str], str]
) -> list[Column[Any]]:
    """A column for each contestant: what `show` says of a result and a name."""
    return [
        (heading.format(titles.get(name, name)), lambda item, name=name: show(item, name))  # type: ignore[misc]
        for name in names
    ]


class Pair(NamedTuple):
    """A result with one of its entries: a row of tables that have a line for each contestant."""

    item: Any
    entry: Any


def pairs(items: Iterable[CaseResult[Any]]) -> list[Pair]:
    """Every result with every entry."""
    return [Pair(item, entry) for item in items for entry in item.entries]


def shown(entry: E | None, show: Callable[[E], str]) -> str:
    """A cell: what there is to show, or a word for why there is nothing; a star for numbers that disagree."""
    if entry is None or entry.status == "absent":
        return NOTHING
    if entry.status == "failed":
        return "out of memory" if entry.reason == "out of memory" else "failed"
    return show(entry) + (" *" if entry.status == "disagrees" else "")


def notes(results: BenchResults, titles: Mapping[str, str] | None = None, apart: bool = False) -> list[str]:
    """Who was not measured or disagrees, and why; one line per reason, or `apart` one per case."""
    titles = titles or {}
    found: dict[tuple[Any, ...], list[str]] = {}
    for item in results.everything():
        for problem in item.problems():
            found.setdefault((*problem, item.case if apart else None), []).append(str(item.case))
    return [
        f"{titles.get(name, name)} {status}: {reason} "
        f"({cases[0]}{f' and {len(cases) - 1} more' if len(cases) > 1 else ''})"
        for (name, status, reason, _), cases in found.items()
    ]


def document(title: str, results: BenchResults, parts: Sequence[str], lines: Sequence[str]) -> str:
    """Everything a person wants to read, as Markdown: where it comes from, the parts, the notes."""
    written = [f"# {title}", *origin(results.sessions), *(part for part in parts if part)]
    written += ["## Notes", bullets(lines)] if lines else []
    return "\n\n".join(written) + "\n"


def bullets(lines: Iterable[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)


def pipes(table: Table) -> str:
    """A table as Markdown."""
    headings, rows = table
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def timing_fields(timing: Timing | None) -> dict[str, Any]:
    """The columns that a timing has in a CSV file."""
    return {name: getattr(timing, name, None) for name in ("median", "low", "high", "repetitions")}


def csv_of(lines: Sequence[Mapping[str, Any]], first: str) -> str:
    """Lines with the same keys as CSV; only the heading `first` where there are none."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(lines[0]) if lines else [first], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def origin(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Who measured, when, with what, and how to do it again."""
    described = []
    for session in sessions:
        versions = ", ".join(
            f"{name} {session[name]}"
            for name in (
                "softtargets",
                "python",
                "torch",
                "triton",
                "liger",
                "cut-cross-entropy",
                "cuda",
                "driver",
            )
            if session.get(name)
        )
        commit = str(session.get("commit") or "")[:10]
        changed = " with uncommitted changes" if session.get("uncommitted_changes") else ""
        described.append(
            f"{session.get('device_name')}, {session.get('date')}. {versions}."
            + (f" Commit {commit}{changed}." if commit else "")
            + f"\n\n```\n{session.get('command')}\n```"
        )
    return described


def device_name(sessions: Sequence[Mapping[str, Any]]) -> str:
    """The device of the last session; empty if nobody knows."""
    return str(sessions[-1].get("device_name", "")) if sessions else ""
