"""Numbers and tables as text that several benches share. No torch here."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

Table = tuple[list[str], list[list[str]]]

NOTHING = "–"


def duration(seconds: float | None) -> str:
    """Three digits and a unit.

    >>> duration(0.000535), duration(0.0123), duration(2.1e-8)
    ('535 µs', '12.3 ms', '21.0 ns')
    """
    if seconds is None:
        return NOTHING
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * factor:
            return f"{digits(seconds / factor)} {unit}"
    return f"{digits(seconds / 1e-9)} ns"


def times(value: float | None) -> str:
    """How many times as much.

    >>> times(2.134), times(13.81), times(133.0), times(None)
    ('2.13x', '13.8x', '133x', '–')
    """
    return NOTHING if value is None else f"{digits(value)}x"


def rate(per_second: float | None) -> str:
    """So many a second, with three digits.

    >>> rate(23776), rate(1.25e6), rate(312.0), rate(None)
    ('23.8 k/s', '1.25 M/s', '312 /s', '–')
    """
    if per_second is None:
        return NOTHING
    for factor, unit in ((1e6, " M/s"), (1e3, " k/s")):
        if per_second >= 0.9995 * factor:
            return f"{digits(per_second / factor)}{unit}"
    return f"{digits(per_second)} /s"


def memory(count: int | None) -> str:
    """Bytes.

    >>> memory(400_000_000), memory(1500)
    ('0.40 GB', '1.5 kB')
    """
    if count is None:
        return NOTHING
    return f"{count / 1e9:.2f} GB" if count >= 1e7 else f"{count / 1e3:.1f} kB"


def digits(value: float) -> str:
    """Three digits of a number that is not much below 1.

    >>> digits(9.994), digits(99.94), digits(12345.6)
    ('9.99', '99.9', '12,346')
    """
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}" if value < 1e4 else f"{value:,.0f}"


def pipes(table: Table) -> str:
    """A table as Markdown."""
    headings, rows = table
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


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
            for name in ("softtargets", "python", "torch", "triton", "liger", "cuda", "driver")
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
