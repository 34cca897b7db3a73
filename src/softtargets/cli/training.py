"""``softtargets train``: one recipe from a file."""

from __future__ import annotations

from pathlib import Path

from softtargets.cli import options, resumable
from softtargets.cli.output import print_fields, print_json
from softtargets.exceptions import RunError


def train(
    recipe: Path,
    device: options.Device = "auto",
    changes: options.Set = None,
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
    tensorboard: options.TensorBoardDir = None,
    as_json: options.Json = False,
) -> None:
    """Train one recipe from a YAML file (its teacher first, if it has one)."""
    from softtargets.recipes import Recipe

    wanted = Recipe.load(recipe).replace(options.assignments(changes))

    from softtargets.cli.console import watching
    from softtargets.training import train as train_recipes

    saved = f"run {wanted.id} is saved and goes on when you give the same command again"
    with resumable(saved), watching(tensorboard) as watcher:
        (run,) = train_recipes(
            [wanted],
            options.run_store(runs_dir),
            device=device,
            data_dir=data_dir,
            watcher=watcher,
            checkpoint_seconds=checkpoint_seconds,
        )
    if run.status != "finished":
        raise RunError(f"run {run.id} failed: {run.provenance['reason']}")
    if as_json:
        print_json({"id": run.id, "directory": str(run.directory), "summary": run.summary})
    else:
        print_fields({"run": run.id, "directory": run.directory, **run.summary})
