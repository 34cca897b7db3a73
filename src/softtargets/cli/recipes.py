"""``softtargets train`` and ``recipe``: train a recipe, check one, see what may be written in one."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

import typer
from typer import Argument

from softtargets.cli import executing, following, options, resumable, saved_run
from softtargets.cli.output import print_fields, print_json
from softtargets.exceptions import RunError

app = typer.Typer(help="Check a recipe; see what a recipe can say.", no_args_is_help=True)


def train(
    recipe: options.RecipeFile,
    device: options.Device = "auto",
    changes: options.Set = None,
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    executor: executing.ExecutorName = "local",
    address: executing.Address = None,
    ranks: executing.Ranks = None,
    cpus_per_worker: executing.CpusPerWorker = None,
    gpus_per_worker: executing.GpusPerWorker = None,
    memory_per_worker: executing.MemoryPerWorker = None,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
    time_for: options.For = None,
    tensorboard: options.TensorBoardDir = None,
    as_json: options.Json = False,
) -> None:
    """Train the model that a YAML file describes.

    Its teacher is trained first, if it has one. Ctrl-C is safe: the same command goes on where it stopped. With --for,
    the exit code is 3 if the time was too short.
    """
    until = options.deadline(time_for, time.monotonic())
    from softtargets.recipes import Recipe

    wanted = Recipe.load(recipe).replace(options.assignments(changes))
    following.follow(device, runs_dir, data_dir, executor=executor, facts={"recipe": wanted.id})

    from softtargets.cli.console import watching

    sizes = {"cpus_per_worker": cpus_per_worker, "gpus_per_worker": gpus_per_worker}
    sizes["memory_per_worker"] = memory_per_worker
    engine = executing.chosen(executor, device, address=address, ranks=ranks, **sizes)
    store = options.run_store(runs_dir)

    with resumable(partial(saved_run, store.root, wanted.id)), watching(tensorboard) as watcher, engine:
        (run,) = engine(
            [wanted],
            store,
            device=device,
            data_dir=data_dir,
            watcher=watcher,
            checkpoint_seconds=checkpoint_seconds,
            until=until,
        )
    if run.status != "finished":
        raise RunError(f"run {run.id} failed: {run.provenance['reason']}")
    if as_json:
        print_json({"id": run.id, "directory": str(run.directory), "summary": run.summary})
    else:
        print_fields({"run": run.id, "directory": run.directory, **run.summary})


@app.command()
def check(recipe: options.RecipeFile, changes: options.Set = None, as_json: options.Json = False) -> None:
    """Print a recipe with its id and every default filled in.

    A recipe that cannot be trained is refused, with the field and what is allowed there.
    """
    import yaml

    from softtargets.recipes import Recipe

    found = Recipe.load(recipe).replace(options.assignments(changes))
    if as_json:
        print_json({"id": found.id, "recipe": found.to_dict()})
    else:
        typer.echo(f"# {found.id}")
        typer.echo(yaml.safe_dump(found.to_dict(), sort_keys=False, allow_unicode=True).rstrip())


@app.command()
def parts(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="Tell more of one part or field: label_smoothing, resnet18, optimiser, ...",
            show_default="an overview of all",
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what a recipe can say: fields, parts, their options.

    Without NAME it lists every field of a recipe and the parts that fit it; with NAME it shows the options of a part,
    what they accept, and their defaults.
    """
    from softtargets.cli import recipe_parts

    if as_json:
        rows = recipe_parts.rows(name)
        return print_json([dict(zip(recipe_parts.HEADINGS, row, strict=True)) for row in rows])
    for line in recipe_parts.overview() if name is None else recipe_parts.detail(name):
        typer.echo(line)
