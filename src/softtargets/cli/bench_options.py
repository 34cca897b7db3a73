"""Options that all benches have, and what follows from them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from softtargets.cli import Interrupted
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.bench.files import Stored

Results = TypeVar("Results")
# A heading, and the columns and rows under it.
Section = tuple[str, tuple[Sequence[str], Sequence[Sequence[str]]]]

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


def until_interrupted(measure: Callable[[], Results], path: Path, command: str) -> Results:
    """Measure; whoever interrupts that is told how to go on."""
    try:
        return measure()
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; what was measured is in {path}. Go on with: {command} --resume"
        ) from None


def print_results(
    results: Stored, files: Sequence[Path], sections: Sequence[Section], notes: Sequence[str], as_json: bool
) -> None:
    """Every table under its heading, the notes, and where everything is."""
    if as_json:
        print_json({"files": [str(file) for file in files], "results": results.to_dict()})
        return
    for heading, table in sections:
        typer.echo(f"{heading}\n")
        print_table(*table)
        typer.echo("")
    for line in [*notes, ""] if notes else []:
        typer.echo(line)
    for file in files:
        typer.echo(str(file))
