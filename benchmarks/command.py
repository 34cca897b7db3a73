"""``python -m benchmarks losses|training|calibration|translation|scale``: one command per bench, all made here."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks import calibration, losses, scale, training, translation
from benchmarks.bench import Bench
from benchmarks.files import write_files
from benchmarks.progress import Bar, Lines
from benchmarks.results import BenchResults
from softtargets.cli import Interrupted
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import SofttargetsError

PROGRAM = "python -m benchmarks"
BENCHES = (losses.BENCH, training.BENCH, calibration.BENCH, translation.BENCH, scale.BENCH)


def _shared(
    device: Annotated[
        str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1, ...")
    ] = "auto",
    out: Annotated[Path | None, typer.Option(help="Where the files go [./benchmarks/BENCH/DEVICE].")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Measure only what is not there yet.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure all again.")] = False,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="RESULTS.JSON", help="Measure nothing: tables and pictures again."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """The options that all benches have."""


def command(bench: Bench) -> Callable[..., None]:
    """The function that typer makes a command of: its parameters are those of the bench's grid and the shared ones."""
    device, *shared = _parameters(_shared)
    options = _parameters(bench.grid)[1:]

    def measure(**given: Any) -> None:
        asked = {option.name: given.pop(option.name) for option in options}
        line = command_line(bench.name, [device, *options, *shared[:1]], asked | given)
        _measure(bench, asked, line, **given)

    parameters = [device, *options, *shared]
    measure.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    measure.__annotations__ = {each.name: each.annotation for each in parameters}
    measure.__doc__ = bench.help
    return measure


def command_line(bench: str, options: Sequence[inspect.Parameter], given: Mapping[str, Any]) -> str:
    """The command that measures this again, without what is at its default.

    >>> command_line("training", _parameters(training.BENCH.grid)[1:], {"nets": "fcn", "accuracy": True})
    'python -m benchmarks training --nets fcn --accuracy'
    """
    words = []
    for option in options:
        value, name = given.get(option.name, option.default), option.name.replace("_", "-")
        if value == option.default:
            continue
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        else:
            words += [f"--{name}", str(value)]
    return f"{PROGRAM} {shlex.join([bench, *words])}"


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]


def _measure(
    bench: Bench,
    asked: Mapping[str, Any],
    line: str,
    *,
    device: str,
    out: Path | None,
    resume: bool,
    overwrite: bool,
    source: Path | None,
    as_json: bool,
) -> None:
    if source is not None:
        if resume or overwrite:
            raise SofttargetsError("--from measures nothing: leave out --resume and --overwrite")
        _show(bench, bench.results().load(source), out or source.parent, source, as_json)
        return
    if resume and overwrite:
        raise SofttargetsError("--resume and --overwrite exclude each other")
    bench.grid("cpu", **asked)  # a misspelt word is refused before torch is asked for anything

    from benchmarks.session import RESULTS, directory_for, run
    from softtargets.training import choose_device

    chosen = choose_device(device)
    directory = out or directory_for(bench, chosen)
    grid = bench.grid(chosen.type, **asked)
    how = {"resume": resume, "overwrite": overwrite}
    try:
        with Bar(bench.prelude) if sys.stderr.isatty() else Lines() as progress:
            results = run(bench, grid, directory, chosen, line, progress=progress, **how)
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; what was measured is in {directory / RESULTS}. Go on with: {line} --resume"
        ) from None
    _show(bench, results, directory, directory / RESULTS, as_json)


def _show(bench: Bench, results: BenchResults, directory: Path, path: Path, as_json: bool) -> None:
    """Write what is made from the results, print the tables and where everything is; refuse what is wrong."""
    files = [path, *write_files(bench, results, directory)]
    if as_json:
        print_json({"files": [str(file) for file in files], "results": results.to_dict()})
    else:
        for section in bench.sections:
            if results.of(section.kind):
                typer.echo(f"{section.heading}\n")
                print_table(*section.table(results))
                typer.echo("")
        remarks = bench.remarks(results)
        for line in [*remarks, *([""] if remarks else []), *files]:
            typer.echo(str(line))
    if wrong := bench.wrong(results):
        raise SofttargetsError(wrong)


app = typer.Typer(
    help="Compare our speed with other libraries, as ratios within one run.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # it would cut long defaults off
)
for _bench in BENCHES:
    app.command(_bench.name)(command(_bench))
