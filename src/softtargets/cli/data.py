"""``softtargets data``: list, where, verify, fetch, arrays, folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from softtargets.cli import resumable
from softtargets.cli.options import DataDir, DatasetName, Json
from softtargets.cli.output import print_json, print_rows
from softtargets.exceptions import DataError

app = typer.Typer(help="Download, check and list datasets; add your own.", no_args_is_help=True)


@app.command("list")
def list_(data_dir: DataDir = None, as_json: Json = False) -> None:
    """List the datasets, and which of them are on this machine."""
    from softtargets.data import CATALOGUE, status

    rows = [(name, status(name, data_dir), source.title, source.what) for name, source in CATALOGUE.items()]
    print_rows(("name", "status", "title", "what"), rows, as_json)


@app.command()
def where(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Print the dataset directory, and why it was chosen."""
    from softtargets.data import where as locate

    directory, reason = locate(data_dir)
    if as_json:
        print_json({"directory": str(directory), "reason": reason, "exists": directory.is_dir()})
    else:
        typer.echo(f"{directory}  ({reason}{'' if directory.is_dir() else '; does not exist yet'})")


@app.command()
def verify(name: DatasetName, data_dir: DataDir = None, as_json: Json = False) -> None:
    """Check that a dataset is complete and undamaged.

    Every file must be there, with the right size and the published checksum.
    """
    from softtargets.data import verify as check
    from softtargets.report import plural

    checks = check(name, data_dir)
    bad = [item for item in checks if not item.ok]
    if as_json:
        print_json([{"file": str(c.file), "ok": c.ok, "problem": c.problem, "fix": c.fix} for c in checks])
    else:
        for item in checks:
            typer.echo(f"ok   {item.file}" if item.ok else f"BAD  {item.file}: {item.problem}")
        if not checks:
            typer.echo(f"{name} comes with a library and has no files to check")
    if bad:
        raise DataError(
            f"{len(bad)} of {plural(len(checks), 'file')} of {name} missing or damaged. {bad[0].fix}"
        )


@app.command()
def fetch(
    name: DatasetName,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            "--to",
            help="The directory to download into.",
            show_default="SOFTTARGETS_DATA if set, else a cache of yours: softtargets data where",
        ),
    ] = None,
) -> None:
    """Download a dataset, check it and unpack it.

    The download comes from the dataset's public address. If it is interrupted, the same command resumes it.
    """
    from softtargets.data import data_directory
    from softtargets.data import fetch as get
    from softtargets.report import plural

    directory = data_directory(data_dir)
    progress = _Bar() if sys.stderr.isatty() else _Percent()
    with resumable(
        lambda: f"resume with: softtargets data fetch {name} --data-dir {shlex.quote(str(directory))}"
    ):
        try:
            files = get(name, directory, progress)
        finally:
            progress.finish()
    typer.echo(f"{name} is ready in {directory}" + (f" ({plural(len(files), 'file')})" if files else ""))


@app.command()
def arrays(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .npz with images and labels, or a .npy with images.")
    ],
    labels: Annotated[
        Path | None,
        typer.Option(help="The .npy file with the labels, if FILE is a .npy.", show_default="in FILE"),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(
            help="A second file of the same form: the test set.",
            show_default="test_images and test_labels in FILE, else a sixth of FILE is held out",
        ),
    ] = None,
    test_labels: Annotated[
        Path | None,
        typer.Option(help="The .npy file with the labels of --test.", show_default="in the file of --test"),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a dataset from your own arrays.

    Prints the part of a recipe that names the dataset. Its digest identifies the images and labels, so that a run is
    never taken for one on other data. A copy is kept in the data directory.
    """
    from softtargets.data import keep_arrays, read_own_arrays
    from softtargets.recipes import dump_yaml
    from softtargets.report import plural

    splits = read_own_arrays(path, labels, test, test_labels)
    name, digest = keep_arrays(splits, data_dir)
    part = {"name": "arrays", "arrays": name, "digest": digest}
    if as_json:
        return print_json({"data": part})
    train, held_out = splits["train"], splits["test"]
    channels, height, width = train.images.shape[1:]
    typer.echo(
        f"# {len(train)} images to train on and {len(held_out)} to test, {height} x {width}, "
        f"{plural(channels, 'channel')}, "
        f"{len(train.classes)} classes"
    )
    typer.echo(dump_yaml({"data": part}).rstrip())


@app.command()
def folder(
    path: Annotated[
        Path, typer.Argument(help="A directory with train/CLASS/IMAGE and test/CLASS/IMAGE (or val).")
    ],
    size: Annotated[
        int, typer.Option(help="Width and height, in pixels, at which images are kept.", min=1)
    ] = 64,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Make a dataset from a folder of your own images.

    Prints the part of a recipe that names the dataset. Its digest identifies the images, so that a run is never
    taken for one on other images. The images stay where they are; the data directory gets a link to them.
    """
    from softtargets.data import Patient, adopt_folder
    from softtargets.recipes import dump_yaml

    name, digest = adopt_folder(path, data_dir, Patient())
    part = {"name": "image-folder", "folder": name, "digest": digest, "size": size}
    if as_json:
        return print_json({"data": part})
    typer.echo(dump_yaml({"data": part}).rstrip())


class _Percent:
    """A line at the start of each file and every ten per cent of it."""

    def start(self, name: str, total: int | None, done: int) -> None:
        self._name, self._total, self._done, self._next = name, total, done, 0
        if not total:
            sys.stderr.write(f"{name}: size unknown\n")
        self.advance(0)

    def advance(self, n: int) -> None:
        self._done += n
        percent = 100 * self._done // self._total if self._total else -1
        if percent >= self._next:
            self._next = percent + 10
            sys.stderr.write(f"{self._name}: {percent} % of {(self._total or 0) / 1e6:,.1f} MB\n")

    def finish(self) -> None:
        return


class _Bar:
    """A bar with rate and time left."""

    def __init__(self) -> None:
        from rich import progress
        from rich.console import Console

        columns: list[Any] = [progress.TextColumn("{task.description}"), progress.BarColumn()]
        columns += [progress.DownloadColumn(), progress.TransferSpeedColumn(), progress.TimeRemainingColumn()]
        self._progress = progress.Progress(*columns, console=Console(stderr=True))
        self._tasks: dict[str, Any] = {}
        self._current: Any = None

    def start(self, name: str, total: int | None, done: int) -> None:
        self._progress.start()
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._current = self._tasks[name]
        self._progress.update(self._current, total=total, completed=done)

    def advance(self, n: int) -> None:
        self._progress.advance(self._current, n)

    def finish(self) -> None:
        self._progress.stop()
