"""``softtargets train`` and ``recipe``: train a recipe, check one, see what may be written in one."""

from __future__ import annotations

import shlex
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from softtargets.cli import completing, executing, following, options, printable, resumable, saved_run
from softtargets.cli.output import print_fields, print_json
from softtargets.exceptions import RecipeError, RunError

if TYPE_CHECKING:
    from softtargets.recipes import Recipe

app = typer.Typer(help="Start a recipe, check one, show what a recipe can contain.", no_args_is_help=True)


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

    If the model has a teacher, the teacher is trained first. Ctrl-C is safe: the same command resumes the training.
    With --for, the exit code is 3 if the time was too short.
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
    for sentence in _other_versions(wanted):
        typer.echo(printable(f"note: {sentence}"), err=True)
    if as_json:
        print_json({"id": run.id, "directory": str(run.directory), "summary": run.summary})
    else:
        print_fields({"run": run.id, "directory": run.directory, **run.summary})


def _other_versions(recipe: Recipe) -> list[str]:
    """That the file of a network of one's own is not what the recipe names: a finished run is of the version before."""
    from softtargets.models import source_digest
    from softtargets.recipes import Own

    model, told = recipe.model, []
    if isinstance(model, Own):
        try:
            found = source_digest(model.net)
        except ValueError:  # it is not here, and a finished run does not need it
            found = model.digest
        if found != model.digest:
            told = [
                f"the file of {model.net} has changed since this recipe was made, and the run is of the version before "
                f"that; to train what is there now give model.digest: '{found}'"
            ]
    return told


@app.command()
def init(
    file: Annotated[Path, Argument(metavar="FILE", help="The YAML file to write.")] = Path("recipe.yaml"),
    data: Annotated[
        str,
        Option(
            help="The dataset; softtargets recipe parts data lists them.", autocompletion=completing.datasets
        ),
    ] = "digits",
    model: Annotated[
        str | None,
        Option(
            help="The network; softtargets recipe parts model lists them.",
            show_default="one that suits the dataset",
            autocompletion=completing.models,
        ),
    ] = None,
    regulariser: Annotated[
        str,
        Option(
            help="The training target; softtargets recipe parts regulariser lists them.",
            autocompletion=completing.regularisers,
        ),
    ] = "label_smoothing",
) -> None:
    """Write a recipe to start from, with a comment on every line.

    An existing file is never overwritten.
    """
    from softtargets.cli.recipe_start import check_start, starting_recipe
    from softtargets.storage import write_atomically

    text = starting_recipe(data, model, regulariser, shlex.quote(str(file)))
    ready = check_start(text)
    if file.exists():
        raise RecipeError(
            f"{file} exists and will not be overwritten; give another name: softtargets recipe init NAME.yaml"
        )
    if not file.parent.is_dir():
        raise RecipeError(f"{file.parent} is not a directory; create it first, or write somewhere else")
    write_atomically(file, text.encode())
    if ready is None:
        typer.echo(f"wrote {file}; replace every YOUR-... in it, then: softtargets train {file}")
    elif ready.model.name == "own" and not getattr(ready.model, "digest", ""):
        net = getattr(ready.model, "net", "")
        typer.echo(
            f"wrote {file}; run softtargets recipe model {net} where {net} can be imported, put the digest that it "
            f"prints under model, then: softtargets train {file}"
        )
    else:
        typer.echo(f"wrote {file} ({ready.id}); next: softtargets train {file}")


@app.command()
def model(
    net: Annotated[
        str,
        Argument(
            metavar="MODULE:CLASS", help="The module and the class of the network, such as mynets:SmallNet."
        ),
    ],
    as_json: options.Json = False,
) -> None:
    """Print the part of a recipe for your own network.

    The part has a digest of the network's source file, so that a run of one version is never taken for a run of
    another. The module is imported: run this command, and the training, where Python finds it (the current
    directory counts).
    """
    from softtargets.models import own_class, source_digest
    from softtargets.recipes import dump_yaml

    try:
        own_class(net)
        digest = source_digest(net)
    except ValueError as error:
        raise RecipeError(str(error)) from None
    part = {"name": "own", "net": net, "digest": digest}
    if as_json:
        return print_json({"model": part})
    typer.echo(dump_yaml({"model": part}).rstrip())


@app.command()
def check(recipe: options.RecipeFile, changes: options.Set = None, as_json: options.Json = False) -> None:
    """Print a recipe with its id and every default filled in.

    If the recipe cannot be trained, the error names the field and what is allowed there.
    """
    from softtargets.recipes import Recipe, dump_yaml

    found = Recipe.load(recipe).replace(options.assignments(changes))
    if as_json:
        print_json({"id": found.id, "recipe": found.to_dict()})
    else:
        typer.echo(f"# {found.id}")
        typer.echo(dump_yaml(found.to_dict()).rstrip())


@app.command()
def parts(
    name: Annotated[
        str | None,
        Argument(
            metavar="NAME",
            help="The part or field to describe: label_smoothing, resnet18, optimiser, ...",
            show_default="an overview of all",
            autocompletion=completing.parts,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Show what a recipe can contain: fields, parts, options.

    Without NAME, lists every field of a recipe and the parts that fit there. With NAME, shows what a part does, its
    formula and source, and its options with what they accept and their defaults.
    """
    from softtargets.cli import recipe_parts

    if as_json:
        rows = recipe_parts.rows(name)
        return print_json([dict(zip(recipe_parts.HEADINGS, row, strict=True)) for row in rows])
    for line in recipe_parts.overview() if name is None else recipe_parts.detail(name):
        typer.echo(line)
