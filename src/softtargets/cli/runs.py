"""``softtargets runs``: list, show, verify, export, measure, delete."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from softtargets.cli.options import Json, RunsDir, assignments, run_store
from softtargets.cli.output import print_fields, print_json, print_table
from softtargets.exceptions import RunError

app = typer.Typer(help="Runs: what trainings left on disk.", no_args_is_help=True)

Where = Annotated[
    list[str] | None,
    Option(
        "--where", metavar="KEY=VALUE", help="Keep runs with this recipe field, e.g. regulariser.alpha=0.1."
    ),
]


@app.command("list")
def list_(where: Where = None, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """List runs, newest first."""
    from softtargets.runs import check_filter

    wanted = assignments(where, "--where")
    store = run_store(runs_dir)
    entries = store.entries(wanted)
    if not entries and wanted:
        check_filter(store.entries(), wanted)
    if as_json:
        return print_json([asdict(entry) for entry in entries])
    if not entries:
        return typer.echo(f"no runs in {store.root}")
    rows = [
        (
            entry.id,
            entry.status,
            *(_part(entry.recipe, slot) for slot in ("data", "model", "regulariser")),
            str(entry.recipe.get("seed", "")),
            _number(entry.summary.get("test_accuracy"), ".4f"),
            _number(entry.seconds, ".1f"),
        )
        for entry in entries
    ]
    print_table(("run", "status", "data", "model", "regulariser", "seed", "test accuracy", "seconds"), rows)


@app.command()
def show(run: str, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Show one run: its recipe, last metrics and provenance. A few first digits of the id are enough."""
    from softtargets.runs import ENGINES

    store = run_store(runs_dir)
    found = store.get(run)
    (entry,) = (entry for entry in store.entries() if entry.id == found.id)
    shown: dict[str, Any] = {"id": found.id, "directory": str(found.directory), "status": entry.status}
    shown["recipe"] = found.recipe.to_dict()
    if entry.status in ("finished", "failed"):
        shown |= {"summary": found.summary, "provenance": found.provenance}
    if as_json:
        return print_json(shown)
    sections = {part: shown.pop(part) for part in ("recipe", "summary", "provenance") if shown.get(part)}
    if number := sections.get("provenance", {}).get("engine"):
        sections["provenance"]["engine"] = (
            f"{number}. {ENGINES.get(number, 'This version does not know it.')}"
        )
    print_fields(shown)
    for part, section in sections.items():
        typer.echo(f"\n{part}")
        print_fields({f"  {key}": value for key, value in section.items()})


@app.command()
def verify(
    run: Annotated[str | None, Argument(help="A run; all of them if not given.")] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Compare every file of finished runs with the checksum in its manifest."""
    from softtargets.runs import Run

    store = run_store(runs_dir)
    unwritten = ("running", "interrupted", "empty")
    written = (Run(store.root / entry.id) for entry in store.entries() if entry.status not in unwritten)
    chosen = list(written) if run is None else [store.get(run)]
    problems = []
    for item in chosen:
        try:
            problems += item.problems()
        except RunError as error:
            problems.append(str(error))
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise RunError(f"{len(problems)} problems in {len(chosen)} runs")
    typer.echo(f"{len(chosen)} runs are as they were written")


@app.command()
def export(
    out: Annotated[
        Path | None,
        Argument(
            metavar="[FILE]",
            help="Recipes, metrics and provenance: one line of JSON per run; .gz compresses it.",
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        Option(
            metavar="FILE.npz",
            help="What each finished network predicted for every example, in a few bytes; `runs measure` reads it.",
        ),
    ] = None,
    split: Annotated[str, Option(help="The split whose predictions are written.")] = "test",
    where: Where = None,
    runs_dir: RunsDir = None,
) -> None:
    """Write all finished and failed runs to one file, without their weights: their logs, their predictions, or both."""
    from softtargets.runs import Run, check_filter, export_logs, export_predictions

    if out is None and predictions is None:
        raise RunError("nothing to write: give FILE for the logs, --predictions FILE.npz, or both")
    wanted = assignments(where, "--where")
    store = run_store(runs_dir)
    chosen = [entry for entry in store.entries(wanted) if entry.status in ("finished", "failed")]
    if not chosen:
        check_filter(store.entries(), wanted)
        raise RunError(f"no finished runs to export in {store.root}")
    runs = {entry.id: Run(store.root / entry.id) for entry in chosen}
    damaged: list[str] = []
    if out is not None:
        count = export_logs(runs.values(), out, damaged)
        typer.echo(f"{count} runs in {out}")
    if predictions is not None:
        count = export_predictions(runs.values(), predictions, split)
        typer.echo(f"predictions of {count} runs in {predictions}")
    if damaged:
        raise RunError(f"{len(damaged)} damaged runs were left out: {damaged[0]}")


@app.command()
def measure(
    file: Annotated[Path, Argument(metavar="FILE.npz", help="Written by `runs export --predictions`.")],
    as_json: Json = False,
) -> None:
    """Compute accuracy, error, likelihood and calibration error of every run from its stored predictions alone."""
    from softtargets.runs import recomputed

    found = recomputed(file)
    if as_json:
        return print_json(found)
    headings = ("accuracy", "error", "nll", "ece")
    rows = [(run, *(f"{numbers[name]:.5f}" for name in headings)) for run, numbers in found.items()]
    print_table(("run", *headings), rows)


@app.command()
def delete(run: str, runs_dir: RunsDir = None) -> None:
    """Delete one run, finished or not, unless it is being written."""
    typer.echo(f"deleted {run_store(runs_dir).delete(run)}")


def _number(value: object, form: str) -> str:
    return f"{value:{form}}" if isinstance(value, int | float) else ""


def _part(recipe: dict[str, object], slot: str) -> str:
    part = recipe.get(slot)
    if not isinstance(part, dict):
        return ""
    given = (part.get(key) for key in ("alpha", "temperature"))
    strength = next((f" {number}" for number in given if number is not None), "")
    return f"{part.get('name')}{strength}"
