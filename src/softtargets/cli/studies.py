"""``softtargets study``: list, show, run, page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from softtargets.cli import options, resumable
from softtargets.cli.command_line import command_line
from softtargets.cli.output import print_json, print_table

app = typer.Typer(help="Studies: a table or figure of a paper, from training to page.", no_args_is_help=True)


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the studies there are."""
    from softtargets.studies import STUDIES

    if as_json:
        print_json(
            [{key: vars(study)[key] for key in ("name", "title", "papers", "seeds")} for study in STUDIES]
        )
    else:
        print_table(("name", "title"), [(study.name, study.title) for study in STUDIES])


@app.command()
def show(name: str, runs_dir: options.RunsDir = None, as_json: options.Json = False) -> None:
    """Say what a study trains and measures, and how much of it is done."""
    from softtargets.cli.console import describe
    from softtargets.studies import STUDIES, find_study

    study = find_study(STUDIES, name)
    store = options.run_store(runs_dir)
    trials = study.trials(study.settings())
    done = {entry.id for entry in store.entries() if entry.status == "finished"}
    if as_json:
        runs = [
            {"id": t.recipe.id, "labels": t.labels, "done": t.recipe.id in done, "recipe": t.recipe.to_dict()}
            for t in trials
        ]
        told = {key: vars(study)[key] for key in ("name", "title", "lead", "papers", "seeds")}
        return print_json({**told, "runs": runs})
    rows = [(t.recipe.id, describe(t.recipe), "finished" if t.recipe.id in done else "to do") for t in trials]
    typer.echo(f"{study.title}\n\n{study.lead}\n")
    for paper in study.papers:
        typer.echo(f"paper: {paper}")
    finished = sum(row[2] == "finished" for row in rows)
    typer.echo(f"\n{len(rows)} runs with {study.seeds} seeds, {finished} finished in {store.root}\n")
    print_table(("run", "recipe", "state"), rows)


@app.command()
def run(
    context: typer.Context,
    name: str,
    seeds: Annotated[int | None, typer.Option(help="How many seeds (default: the study's own).")] = None,
    device: options.Device = "auto",
    changes: options.Set = None,
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    out: Annotated[Path | None, typer.Option(help="Where the report goes [./reports/NAME].")] = None,
    workers: options.Workers = None,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
    tensorboard: options.TensorBoardDir = None,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Train nothing: make the page of the runs that are finished.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Train what is missing, measure, and write the page."""
    from softtargets.studies import STUDIES, find_study

    study = find_study(STUDIES, name)
    settings = study.settings(seeds, options.assignments(changes))
    study.trials(settings)  # refuses impossible changes before torch is asked for anything

    from softtargets.cli.console import watching
    from softtargets.studies import run_study
    from softtargets.training import train

    # The page is the same however many processes make it, and without the log, so its own command names neither.
    speed = ("workers", "checkpoint_seconds")
    again = f"Go on with: {command_line(context, without=speed)}"
    with resumable(lambda: f"everything so far is saved. {again}"), watching(tensorboard) as watcher:
        page = run_study(
            study,
            settings,
            options.run_store(runs_dir),
            out or Path("reports") / name,
            command=command_line(context, without=(*speed, "tensorboard")),
            train=None if no_train else train,
            device=device,
            data_dir=data_dir,
            watcher=watcher,
            checkpoint_seconds=checkpoint_seconds,
            workers=options.worker_count(workers, device),
        )
    _tell(page, as_json)


@app.command("page")
def page_(
    context: typer.Context,
    name: str,
    source: Annotated[
        Path, typer.Option("--from", help="Directory with the results.json and logs.jsonl.gz of a page.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; by default it replaces the one in --from.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write a study's page again from its stored results, without any run: verdicts by today's rule, today's look."""
    from softtargets.studies import STUDIES, find_study, redraw_study

    study = find_study(STUDIES, name)
    _tell(redraw_study(study, source, out or source, command=command_line(context)), as_json)


def _tell(page: Path, as_json: bool) -> None:
    """What came out, and where it is."""
    results = json.loads((page.parent / "results.json").read_text(encoding="utf-8"))
    if as_json:
        print_json({"report": str(page), "claims": results["claims"], "provenance": results["provenance"]})
        return
    for claim in results["claims"]:
        printed = claim["printed"]
        number = f" (its number: {printed['verdict']})" if printed and not printed["whole_claim"] else ""
        typer.echo(f"{claim['verdict']:<13} {claim['statement']}{number}")
    typer.echo(f"\nreport: {page.resolve()}")
