"""The tree of commands."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

import softtargets
from softtargets.cli import advise, calibrate, data, recipes, runs, studies, view
from softtargets.exceptions import SofttargetsError

app = typer.Typer(
    help="Train with soft targets, measure what they did, reproduce the papers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
    rich_markup_mode=None,  # it would take [a default] for a colour and leave it out
)
for name, group in {"study": studies.app, "runs": runs.app, "recipe": recipes.app, "data": data.app}.items():
    app.add_typer(group, name=name)
commands = (
    recipes.train,
    calibrate.calibrate,
    calibrate.apply,
    calibrate.compare,
    view.view,
    advise.advise,
)
for command in commands:
    app.command()(command)


# Words and --help go to the benchmarks as they are; those live beside the sources and not in the wheel.
@app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def bench(context: typer.Context) -> None:
    """Benchmarks: ours against others, as ratios of one run (from a checkout: python -m benchmarks)."""
    checkout = Path(softtargets.__file__).parents[2]
    if not (checkout / "benchmarks" / "command.py").is_file():
        raise SofttargetsError(
            "the benchmarks are not in the installed package: run python -m benchmarks in a checkout of the source "
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
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere.")
    ] = False,
) -> None:
    """Options of the program itself; --debug is taken out of the command line before it gets here."""
