"""``softtargets bench calibration``: all metrics of ours against packages that compute the ECE."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.cli.bench_options import (
    Device,
    From,
    Overwrite,
    Resume,
    check_switches,
    command_line,
    print_results,
    until_interrupted,
)
from softtargets.cli.bench_progress import progress
from softtargets.cli.options import Json
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.bench.calibration import Results


def calibration(
    device: Device = "auto",
    examples: Annotated[int | None, typer.Option(help="How many examples (1000000).")] = None,
    classes: Annotated[int | None, typer.Option(help="How many classes (1000).")] = None,
    cpu_examples: Annotated[
        int | None, typer.Option(help="Beside a GPU: how many examples on the CPU, to compare with (50000).")
    ] = None,
    rivals: Annotated[
        str | None, typer.Option(help="Of torchmetrics, torchmetrics streamed, netcal; all or none (all).")
    ] = None,
    batch: Annotated[
        int | None, typer.Option(help="Examples at a time where they are streamed (8192).")
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="How many turns everybody takes (5).")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of torch on the CPU (its own choice).")] = None,
    memory: Annotated[
        bool, typer.Option("--memory/--no-memory", help="Also how much memory everybody takes.")
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="Where the files go [./benchmarks/calibration/DEVICE].")
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    source: From = None,
    as_json: Json = False,
) -> None:
    """Time and memory of all calibration metrics in one pass, against torchmetrics and netcal with the ECE alone."""
    check_switches(source, resume, overwrite)
    if source is not None:
        from softtargets.bench.calibration import Results

        _show(Results.load(source), out or source.parent, source, as_json)
        return
    words: dict[str, Any] = {
        "examples": examples,
        "classes": classes,
        "cpu_examples": cpu_examples,
        "rivals": rivals,
        "batch": batch,
        "repeats": repeats,
        "threads": threads,
    }
    options: dict[str, Any] = {"--device": None if device == "auto" else device}
    options |= {f"--{name.replace('_', '-')}": value for name, value in words.items()}
    options["--out"] = out
    command = command_line("calibration", options, [] if memory else ["--no-memory"])

    from softtargets.bench.calibration import plan

    plan("cpu", **words)  # a misspelt word is refused before torch is asked for anything

    from softtargets.bench.calibration.running import default_directory, run
    from softtargets.bench.calibration.tables import summary
    from softtargets.bench.sessions import RESULTS
    from softtargets.training import choose_device

    chosen = choose_device(device)
    directory = out or default_directory(chosen)
    wanted = plan(chosen.type, **words, memory=memory)
    how = {"resume": resume, "overwrite": overwrite}
    with progress(summary, "starting") as watcher:
        results = until_interrupted(
            lambda: run(wanted, directory, chosen, command, watcher=watcher, **how),
            directory / RESULTS,
            command,
        )
    _show(results, directory, directory / RESULTS, as_json)


def _show(results: Results, directory: Path, path: Path, as_json: bool) -> None:
    """Write what is made from the results, print the tables and where everything is; refuse what is wrong."""
    from softtargets.bench.calibration.tables import notes, overview, verdicts
    from softtargets.bench.calibration.writing import write_files

    heading = "from logits to metrics: all of ours in one pass, the ECE alone of the others"
    lines = [*verdicts(results), *notes(results)]
    print_results(
        results, [path, *write_files(results, directory)], [(heading, overview(results))], lines, as_json
    )
    if wrong := results.disagreements():
        raise SofttargetsError(
            f"not everybody computes the same, so the times mean nothing: {'; '.join(wrong)}"
        )
