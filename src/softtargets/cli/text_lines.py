"""Lines of text in and out: files, standard input and output, warnings as sentences."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from softtargets.cli import printable
from softtargets.exceptions import SofttargetsError

STANDARD = "-"  # standard input or output, where a file could be


def text_lines(source: str) -> list[str]:
    """The lines of a file, or of standard input."""
    from softtargets.data import lines_of, read_lines

    if source != STANDARD:
        return read_lines(Path(source))
    if sys.stdin.isatty():
        typer.echo("Type sentences, one per line; Ctrl-D ends the input.", err=True)
    return lines_of(sys.stdin.buffer.read(), "standard input")


def refuse_output(out: str, overwrite: bool) -> None:
    """Refuse what cannot be written to, before anything is translated."""
    if out == STANDARD:
        return
    from softtargets.predictions import refuse_replacing

    path = Path(out)
    refuse_replacing(path, overwrite)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        what = "is not writable" if path.parent.is_dir() else "is not a directory"
        raise SofttargetsError(f"cannot write {path}: {path.parent} {what}; choose another place")


@contextmanager
def writing(out: str) -> Iterator[Callable[[str], None]]:
    """Where translations go: a file that is there when all is done, or standard output, as it comes."""
    from softtargets.storage import replacing

    if out != STANDARD:
        with replacing(Path(out)) as file:
            yield lambda text: _to_file(file, text)
        return
    try:
        yield _to_standard_output
    except BrokenPipeError:
        # Whoever reads has seen enough, as head has. Python would complain when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_standard_output(text: str) -> None:
    if sys.stdout.isatty():
        typer.echo(text, nl=False)
    else:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.buffer.flush()


@contextmanager
def warnings_told() -> Iterator[None]:
    """Warnings as sentences on standard error, once each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for sentence in dict.fromkeys(str(one.message) for one in caught):
        typer.echo(printable(f"note: {sentence}"), err=True)


def _to_file(file: BinaryIO, text: str) -> None:
    file.write(text.encode())
