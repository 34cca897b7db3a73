"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer

from softtargets.cli import printable


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    from softtargets.report import plain_data

    typer.echo(json.dumps(plain_data(value), indent=1, ensure_ascii=False))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain aligned table: readable on a terminal, greppable in a pipe, never wrapped or cut."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(printable(line).rstrip())


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]], as_json: bool) -> None:
    """Rows for a script, or as a table."""
    if as_json:
        print_json([dict(zip(headings, row, strict=True)) for row in rows])
    else:
        print_table(headings, rows)


def print_fields(fields: dict[str, Any]) -> None:
    """Names and values, aligned."""
    width = max(map(len, fields))
    for name, value in fields.items():
        typer.echo(f"{name.ljust(width)}  {value}")


def print_section(name: str, fields: Mapping[str, Any]) -> None:
    """Fields under a heading, as the YAML that recipes are written in: one on each line, short lists within a line."""
    from softtargets.recipes import dump_yaml
    from softtargets.report import plain_data

    typer.echo(f"{name}:")
    for field, value in plain_data(fields).items():
        nested = isinstance(value, dict | list)
        style = None if nested else False  # None: within a line what has nothing nested in it
        text = dump_yaml({field: value}, default_flow_style=style)
        for line in text.splitlines():
            typer.echo(printable(f"  {line}"))
