"""What calibrate and compare share: options, progress, where pages go."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.predictions import Predictions

Kind = Annotated[
    str | None, typer.Option("--kind", help="logits or probabilities [found out from the numbers].")
]
Scores = Annotated[
    list[str] | None,
    typer.Option(
        "--scores", metavar="NAME", help="Array with the scores; for tables columns, one each time."
    ),
]
Label = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="Array or column with the labels.")
]
IgnoreIndex = Annotated[int | None, typer.Option(help="Leave out rows with this label, such as -100.")]
Bins = Annotated[int, typer.Option(help="Equal-width bins of confidence.")]
Told = Callable[[str, int, int], None]


def opened(path: Path, labels: Path | None, options: Mapping[str, Any]) -> Predictions:
    """Open predictions with the options of the command line."""
    from softtargets.predictions import open_predictions

    kind = options["kind"]
    if kind not in (None, "logits", "probabilities"):
        raise SofttargetsError(f"--kind must be logits or probabilities, not {kind}")
    names = options["scores"] or None
    return open_predictions(
        path,
        labels=labels,
        kind=kind,
        scores_name=names[0] if names and len(names) == 1 else names,
        labels_name=options["label"],
        ignore_index=options["ignore_index"],
    )


@contextmanager
def saying_options() -> Iterator[None]:
    """Refusals of files speak of options instead of arguments of functions."""
    from softtargets.predictions import PredictionFileError

    try:
        yield
    except PredictionFileError as refused:
        raise SofttargetsError(_as_options(str(refused))) from None


def _as_options(sentence: str) -> str:
    """Arguments of functions as options: ``scores_name`` is ``--scores`` here."""
    renamed = (
        ('kind="logits"', "--kind logits"),
        ('kind="probabilities"', "--kind probabilities"),
        ("scores_name", "--scores"),
        ("labels_name", "--label"),
        ("another ignore_index", "another --ignore-index"),
        ("with labels,", "with --labels,"),
    )
    for name, option in renamed:
        sentence = sentence.replace(name, option)
    return re.sub(r"with labels$", "with --labels", sentence)


@contextmanager
def telling() -> Iterator[Told]:
    """A bar on a terminal, and nothing elsewhere; files that are read at once show none."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
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

        def told(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield told


def provenance(started: float, **files: Path) -> dict[str, Any]:
    """When, with what, from which files a page was made."""
    from datetime import datetime, timezone

    import torch

    import softtargets

    return {
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "softtargets": softtargets.__version__,
        "torch": str(torch.__version__),
        **{name: f"{path} ({_size(path)})" for name, path in files.items()},
        "this command": f"{time.monotonic() - started:.1f} s",
    }


def command_line(words: list[str], options: Mapping[str, Any]) -> str:
    """The command that makes a page again, without what is at its default."""
    told = ["softtargets", *words]
    for option, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            told += [option, str(one)] if one is not None else []
    return shlex.join(told)


def stem(path: Path) -> str:
    """A file's name as part of a directory's."""
    return re.sub(r"[^\w.-]+", "_", path.stem) or "predictions"


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError  # the last unit takes everything
