"""``softtargets train``: one recipe from a file."""

from __future__ import annotations

from pathlib import Path

from softtargets.cli import Interrupted
from softtargets.cli.options import (
    CheckpointSeconds,
    DataDir,
    Device,
    Json,
    RunsDir,
    Set,
    TensorBoardDir,
    assignments,
    runs_directory,
)
from softtargets.cli.output import print_fields, print_json
from softtargets.exceptions import RunError


def train(
    recipe: Path,
    device: Device = "auto",
    changes: Set = None,
    runs_dir: RunsDir = None,
    data_dir: DataDir = None,
    checkpoint_seconds: CheckpointSeconds = 30.0,
    tensorboard: TensorBoardDir = None,
    as_json: Json = False,
) -> None:
    """Train one recipe from a YAML file (its teacher first, if it has one)."""
    from softtargets.recipes import Recipe

    wanted = Recipe.load(recipe).replace(assignments(changes))

    from softtargets.cli.console import watching
    from softtargets.runs import RunStore
    from softtargets.training import train as train_recipes

    try:
        with watching(tensorboard) as watcher:
            (run,) = train_recipes(
                [wanted],
                RunStore(runs_directory(runs_dir)),
                device=device,
                data_dir=data_dir,
                watcher=watcher,
                checkpoint_seconds=checkpoint_seconds,
            )
    except KeyboardInterrupt:
        message = f"interrupted; run {wanted.id} is saved and goes on when you give the same command again"
        raise Interrupted(message) from None
    if run.status != "finished":
        raise RunError(f"run {run.id} failed: {run.provenance['reason']}")
    if as_json:
        print_json({"id": run.id, "directory": str(run.directory), "summary": run.summary})
    else:
        print_fields({"run": run.id, "directory": run.directory, **run.summary})
