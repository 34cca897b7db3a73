"""The tree of commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import softtargets
from softtargets.cli import (
    advise,
    calibrate,
    campaign,
    data,
    recipes,
    results,
    runs,
    studies,
    translate,
    view,
)
from softtargets.exceptions import SofttargetsError

app = typer.Typer(
    help="Train classifiers on soft targets, measure what the targets did, and reproduce the papers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # it would take [a default] for a colour and leave it out
)
GROUPS = {
    "study": studies.app,
    "campaign": campaign.app,
    "runs": runs.app,
    "recipe": recipes.app,
    "data": data.app,
    "translate": translate.app,
}
for name, group in GROUPS.items():
    app.add_typer(group, name=name)
# What the list of commands says of each where its own first line is too long for a terminal of 80 columns.
SHORT: dict[Callable[..., None], str | None] = {
    recipes.train: None,
    calibrate.calibrate: "Measure a model's calibration; correct it if that helps.",
    calibrate.apply: "Apply a correction from calibrate to other predictions.",
    calibrate.compare: "Show which of two models is better, and at what.",
    view.view: None,
    results.results: None,
    advise.advise: "Estimate how many labels are wrong; recommend smoothing.",
}
for command, short in SHORT.items():
    app.command(short_help=short)(command)


# Words and --help go to the benchmarks as they are; those live beside the sources and not in the wheel.
@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench(context: typer.Context) -> None:
    """Compare the speed of softtargets with other libraries.

    Needs a checkout of the source repository, where python -m benchmarks does the same.
    """
    checkout = Path(softtargets.__file__).parents[2]
    if not (checkout / "benchmarks" / "command.py").is_file():
        raise SofttargetsError(
            "the installed package has no benchmarks: run python -m benchmarks in a checkout of the source "
            "repository"
        )
    sys.path.insert(0, str(checkout))
    command = import_module("benchmarks.command")
    command.app(args=context.args, prog_name=command.PROGRAM, standalone_mode=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(softtargets.__version__)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show the traceback of an error; may stand anywhere in the command."),
    ] = False,
) -> None:
    """Options of the program itself; --debug is taken out of the command line before it gets here."""
