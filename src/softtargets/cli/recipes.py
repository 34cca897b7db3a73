"""``softtargets train`` and ``recipe``: train a recipe, check one, see what may be written in one."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import typer

from softtargets.cli import options, resumable
from softtargets.cli.output import print_fields, print_json, print_rows
from softtargets.exceptions import RunError

app = typer.Typer(help="Recipes: descriptions of one training.", no_args_is_help=True)


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

    store = options.run_store(runs_dir)

    def saved() -> str:
        if not (store.root / wanted.id).exists():
            return f"run {wanted.id} had not begun; give the same command again"
        return f"run {wanted.id} is saved and goes on when you give the same command again"

    with resumable(saved), watching(tensorboard) as watcher:
        (run,) = train_recipes(
            [wanted],
            store,
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


@app.command()
def check(recipe: Path, changes: options.Set = None, as_json: options.Json = False) -> None:
    """Read a recipe, refuse it or print it with its id and every default filled in."""
    import yaml

    from softtargets.recipes import Recipe

    found = Recipe.load(recipe).replace(options.assignments(changes))
    if as_json:
        print_json({"id": found.id, "recipe": found.to_dict()})
    else:
        typer.echo(f"# {found.id}")
        typer.echo(yaml.safe_dump(found.to_dict(), sort_keys=False, allow_unicode=True).rstrip())


@app.command()
def parts(as_json: options.Json = False) -> None:
    """List every field of a recipe, what it accepts, and its default."""
    from softtargets.recipes import Part, Recipe, describe, field_types, kinds

    rows = []
    for name, hint in field_types(Recipe).items():
        rows.append((name, describe(hint), _default(Recipe, name)))
        slot = hint if isinstance(hint, type) else next(iter(getattr(hint, "__args__", ())), None)
        if isinstance(slot, type) and issubclass(slot, Part):
            for kind, part in kinds(slot).items():
                for option, accepted in field_types(part).items():
                    rows.append((f"{name}.{option} ({kind})", describe(accepted), _default(part, option)))
    print_rows(("field", "accepts", "default"), rows, as_json)


def _default(part: type, name: str) -> str:
    default = next(field.default for field in fields(part) if field.name == name)
    if default is MISSING:
        return "required"
    return str(getattr(default, "name", None) or ("" if default is None else default))
