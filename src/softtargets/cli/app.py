"""The tree of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from softtargets.cli import advise, bench, calibrate, data, recipes, runs, studies, training, view

app = typer.Typer(
    help="Train with soft targets, measure what they did, reproduce the papers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for name, group in {"study": studies.app, "runs": runs.app, "recipe": recipes.app, "data": data.app}.items():
    app.add_typer(group, name=name)
for command in (training.train, calibrate.calibrate, calibrate.compare, view.view, advise.advise):
    app.command()(command)
app.command("bench", add_help_option=False, context_settings=bench.AS_THEY_ARE)(bench.bench)


def _version(wanted: bool) -> None:
    if wanted:
        import softtargets

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
