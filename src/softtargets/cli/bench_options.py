"""Options that all benches have, and what follows from them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from softtargets.exceptions import SofttargetsError

Device = Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1, ...")]
Resume = Annotated[bool, typer.Option("--resume", help="Measure only what is not there yet.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Measure all again.")]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="RESULTS.JSON", help="Measure nothing: tables and pictures again."),
]


def check_switches(source: Path | None, resume: bool, overwrite: bool) -> None:
    """Refuse what cannot be meant."""
    if source is not None and (resume or overwrite):
        raise SofttargetsError("--from measures nothing: leave out --resume and --overwrite")
    if resume and overwrite:
        raise SofttargetsError("--resume and --overwrite exclude each other")


def command_line(bench: str, options: Mapping[str, Any], flags: Sequence[str]) -> str:
    """The command that measures this again, without what is at its default.

    >>> command_line("training", {"--nets": "fcn", "--out": None}, ["--accuracy"])
    'softtargets bench training --nets fcn --accuracy'
    """
    words = ["softtargets", "bench", bench]
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    return shlex.join([*words, *flags])
