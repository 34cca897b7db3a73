"""What the commands that make a page of files share: options, progress, where pages go, what is printed."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from softtargets.cli.command_line import command_line
from softtargets.cli.options import find_run
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import RunError

if TYPE_CHECKING:
    from softtargets.predictions import Arrays, Predictions
    from softtargets.report import Page

# What predictions may come in, as help has it.
FILES = ".npz .npy .csv .tsv .jsonl .parquet .safetensors .pt"

Labels = Annotated[
    Path | None, Option(help="The file with the labels.", show_default="the file with the predictions")
]
Kind = Annotated[
    str | None,
    Option(help="What the numbers are: logits or probabilities.", show_default="inferred from the numbers"),
]
Scores = Annotated[
    list[str] | None,
    Option(
        "--scores",
        metavar="NAME",
        help="The array with the scores. In a table: a column of scores; repeat the option for each column.",
        show_default="inferred from names and shapes",
    ),
]
Label = Annotated[
    str | None,
    Option(
        "--label",
        metavar="NAME",
        help="The array or column with the labels.",
        show_default="inferred from names and shapes",
    ),
]
IgnoreIndex = Annotated[
    int | None,
    Option(help="Leave out rows with this label, such as -100.", show_default="every row counts"),
]
Bins = Annotated[int, Option(help="Equal-width bins of confidence, for ECE and reliability diagram.")]
Overwrite = Annotated[
    bool, Option("--overwrite", help="Replace existing files; without this option, they are never replaced.")
]
Told = Callable[[str, int, int], None]
Rows = Sequence[Sequence[str]]
EVERY = 30.0  # seconds between two lines of progress where there is no terminal
READING = ("labels", "kind", "scores_name", "labels_name", "ignore_index")  # options of files


def located(word: str, runs_dir: Path | None) -> Path:
    """The file of predictions that a word means: its path, or what a run kept on a split, if none is said on test."""
    run, split = find_run(word, runs_dir)
    if run is None:
        return Path(word)
    split = split or "test"
    if run.recipe.data.task == "translation":
        raise RunError(
            f"run {run.id} is a translation model, and these do not keep the scores of all tokens. To measure its "
            f"calibration: softtargets translate score {run.id} --src FILE --ref FILE"
        )
    if not run.has_predictions(split):
        run.kept(split)  # says which there are
    return run.directory / "predictions" / f"{split}.safetensors"


def own_directory(command: str, **files: Path) -> Path:
    """Where the page of these files goes: not where the page of others is that have the same name."""
    base = Path("reports") / "-".join([command, *(called(path) for path in files.values())])
    places = (base if n == 1 else base.with_name(f"{base.name}-{n}") for n in count(1))
    return next(place for place in places if _is_free(place, files))


def _is_free(place: Path, files: Mapping[str, Path]) -> bool:
    from softtargets.storage import read_json

    try:
        made = read_json(place / "results.json")["provenance"]
        sources = {name: Path(made[name].rpartition(" (")[0]) for name in files}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return True  # no page that says of what it was made
    return all(sources[name].absolute() == path.absolute() for name, path in files.items())


def only_confidences(arrays: Arrays, context: typer.Context) -> bool:
    """Whether a file has confidences of predictions instead of scores: by what the user says, or by its names."""
    from softtargets.predictions import find_confidences

    given = context.params
    if any(given[name] is not None for name in ("confidence_name", "correct_name", "prediction_name")):
        return True
    return not given["scores_name"] and given["labels"] is None and find_confidences(arrays) is not None


def opened(path: Path | Arrays, context: typer.Context, *, labels_needed: bool = True) -> Predictions:
    """Open predictions with the options of the command line that are for `READING`."""
    from softtargets.inspection.shared import check_choice
    from softtargets.predictions import open_predictions

    given: dict[str, Any] = {name: context.params[name] for name in READING}
    if given["kind"] is not None:
        check_choice("kind", given["kind"], ("logits", "probabilities"))
    if len(scores := given["scores_name"] or ()) <= 1:
        given["scores_name"] = scores[0] if scores else None
    return open_predictions(path, **given, labels_needed=labels_needed)


@contextmanager
def making(directory: Path) -> Iterator[Told]:
    """The directory of a page, and `progress`."""
    from softtargets.storage import make_directory

    make_directory(directory)  # found out now, not after a long file
    with progress() as told:
        yield told


@contextmanager
def progress() -> Iterator[Told]:
    """A bar on a terminal; elsewhere, as in a log, a line every half minute, so that quick commands show nothing."""
    if not sys.stderr.isatty():
        yield _plain_lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=28),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("reading", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total or None
        )


def _plain_lines(clock: Callable[[], float] = time.monotonic) -> Told:
    last = clock()

    def told(what: str, done: int, total: int) -> None:
        nonlocal last
        if clock() - last >= EVERY:
            last = clock()
            typer.echo(f"{what}, {done / total:.0%} done".replace("%", " %") if total else what, err=True)

    return told


def signed(page: Page, context: typer.Context, started: float, **files: Path | None) -> Page:
    """The same page with the command that makes it again, and what it was made of."""
    return replace(page, command=command_line(context), provenance=provenance(started, **files))


def provenance(started: float, **files: Path | None) -> dict[str, Any]:
    """When, with what, from which files a page was made."""
    from datetime import datetime, timezone

    import torch

    import softtargets

    return {
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "softtargets": softtargets.__version__,
        "torch": str(torch.__version__),
        **{name: f"{path} ({_size(path)})" for name, path in files.items() if path},
        "this command": f"{time.monotonic() - started:.1f} s",
    }


def as_json(page: Page, directory: Path, numbers: Mapping[str, Any], **more: Any) -> None:
    """Write a page and print its numbers, for scripts."""
    from softtargets.report import write_page

    path = write_page(page, directory)
    verdict = {"verdict": vars(page.verdict)} if page.verdict else {}
    print_json({"report": str(path), **verdict, **more, **numbers})


def as_text(
    page: Page, directory: Path, opening: str, table: Rows, between: str = "", code: Rows = ()
) -> None:
    """Write a page and print for a terminal: a table, the verdict, lines to copy, and where the page is."""
    from softtargets.report import write_page

    path = write_page(page, directory)
    assert page.verdict is not None
    typer.echo(f"{opening}\n")
    print_table(table[0], table[1:])
    typer.echo(f"\n{between}{page.verdict.headline}.")
    for sentence in [*page.verdict.sentences, *page.warnings]:
        typer.echo(sentence)
    if code:
        typer.echo("")
        print_table(("for", "write"), code)
    typer.echo(f"\npage: {path.resolve()}")


def stem(path: Path) -> str:
    """A file's name as part of a directory's."""
    return re.sub(r"[^\w.-]+", "_", path.stem) or "predictions"


def called(path: Path) -> str:
    """The same; of a run its id and the split."""
    run = path.parent.parent
    return f"{run.name}-{stem(path)}" if (run / "run.json").exists() else stem(path)


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.{int(unit != 'bytes')}f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
