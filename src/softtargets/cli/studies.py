"""``softtargets study``: list, show, run, page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from softtargets.cli import executing, following, options, resumable
from softtargets.cli.command_line import command_line
from softtargets.cli.output import print_json, print_table

app = typer.Typer(help="Reproduce a paper's table or figure, from training to page.", no_args_is_help=True)


@app.command("list")
def list_(as_json: options.Json = False) -> None:
    """List the studies with their questions, seeds and sizes."""
    from softtargets.studies import STUDIES

    if as_json:
        keys = ("name", "title", "papers", "seeds", "sizes")
        return print_json([{key: vars(study)[key] for key in keys} for study in STUDIES])
    rows = [(study.name, str(study.seeds), ", ".join(study.sizes) or "–", study.title) for study in STUDIES]
    print_table(("name", "seeds", "sizes", "title"), rows)


@app.command()
def show(
    context: typer.Context,
    name: options.StudyName,
    seeds: options.Seeds = None,
    changes: options.StudySet = None,
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    runs: Annotated[bool, typer.Option("--runs", help="List every run, finished or not.")] = False,
    as_json: options.Json = False,
) -> None:
    """Show what a study trains, what it costs and what it tests.

    Prints the dataset, the number of runs and images, how much is done, and the claims. Nothing is trained.
    """
    from softtargets.cli import study_summary
    from softtargets.cli.console import describe
    from softtargets.studies import STUDIES, find_study

    study = find_study(STUDIES, name)
    store = options.run_store(runs_dir)
    trials = study.trials(settings := study.settings(seeds, options.assignments(changes)))
    done = {entry.id: entry.seconds for entry in store.entries() if entry.status == "finished"}
    if as_json:
        listed = [
            {"id": t.recipe.id, "labels": t.labels, "done": t.recipe.id in done, "recipe": t.recipe.to_dict()}
            for t in trials
        ]
        told = {key: vars(study)[key] for key in ("name", "title", "lead", "papers", "seeds")}
        return print_json({**told, "runs": listed})
    again = command_line(context, without=("runs",)).replace("study show", "study run", 1)
    summary = study_summary.Summary(study, settings, trials, done, store.root, data_dir, again)
    for line in summary.lines():
        typer.echo(line)
    if runs:
        typer.echo("")
        states = ("to do", "finished")
        rows = [(t.recipe.id, describe(t.recipe), states[t.recipe.id in done]) for t in trials]
        print_table(("run", "recipe", "state"), rows)


@app.command()
def run(
    context: typer.Context,
    name: options.StudyName,
    seeds: options.Seeds = None,
    device: options.Device = "auto",
    changes: options.StudySet = None,
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The directory to write the page to.", show_default="./reports/STUDY"),
    ] = None,
    workers: options.Workers = None,
    executor: executing.ExecutorName = "local",
    address: executing.Address = None,
    ranks: executing.Ranks = None,
    cpus_per_worker: executing.CpusPerWorker = None,
    gpus_per_worker: executing.GpusPerWorker = None,
    memory_per_worker: executing.MemoryPerWorker = None,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
    time_for: options.For = None,
    tensorboard: options.TensorBoardDir = None,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Train nothing: make the page from the runs that are finished.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Train a study and write its page, with a verdict on each claim.

    Finished runs are reused. Ctrl-C is safe: the same command resumes the training. With --for, a study that is not
    finished in time gets no page yet, and the exit code is 3.
    """
    until = options.deadline(time_for, time.monotonic())
    from softtargets.studies import STUDIES, find_study

    study = find_study(STUDIES, name)
    settings = study.settings(seeds, options.assignments(changes))
    trials = study.trials(settings)  # refuses impossible changes before torch is asked for anything
    seen = {"list of recipes": following.digest(trial.recipe.id for trial in trials)}
    following.follow(device, runs_dir, data_dir, executor=executor, workers=workers, facts=seen)

    from softtargets.cli.console import watching
    from softtargets.studies import run_study

    sizes = {"cpus_per_worker": cpus_per_worker, "gpus_per_worker": gpus_per_worker}
    sizes["memory_per_worker"] = memory_per_worker
    engine = executing.chosen(executor, device, address=address, ranks=ranks, **sizes)
    # The page is the same however many processes make it, and without the log, so its own command names neither.
    speed = ("workers", "checkpoint_seconds", "time_for", *executing.PARAMETERS)
    again = f"Go on with: {command_line(context, without=speed[:2])}"
    with resumable(lambda: f"everything so far is saved. {again}"), watching(tensorboard) as watcher, engine:
        page = run_study(
            study,
            settings,
            options.run_store(runs_dir),
            out or Path("reports") / name,
            command=command_line(context, without=(*speed, "tensorboard")),
            train=None if no_train else engine,
            device=device if engine.here else "auto",  # that of this machine: studies compute here
            data_dir=data_dir,
            watcher=watcher,
            checkpoint_seconds=checkpoint_seconds,
            workers=executing.worker_count(engine, workers, device),
            until=until,
        )
    _tell(page, as_json)


@app.command("page")
def page_(
    context: typer.Context,
    name: options.StudyName,
    source: Annotated[
        Path,
        typer.Option("--from", help="The directory with the page's results.json and logs.jsonl.gz."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The directory to write the page to.",
            show_default="the directory of --from, whose page is replaced",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Rebuild a study's page from its stored results.

    No runs are needed. Verdicts follow the current rules, and the page the current design. Figures that need
    weights or predictions are left out; a page that has such figures is not replaced.
    """
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
