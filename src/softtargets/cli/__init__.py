"""The command line. Thin: every command is a few lines around a function of another room, imported late."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from softtargets.cli import following
from softtargets.exceptions import SofttargetsError, Unfinished

USER_MISTAKE, BUG, OUT_OF_TIME, INTERRUPTED = 2, 1, 3, 130


class Interrupted(SofttargetsError):
    """Ctrl-C, after everything was saved."""


class OutOfTime(SofttargetsError):
    """The time that a command was given is over, after everything was saved."""


@contextmanager
def resumable(advice: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C, and the end of ``--for``, end with what was saved and how to go on; `advice` is asked for then."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {advice()}") from None
    except Unfinished as cut:
        left = "1 run is" if len(cut.left) == 1 else f"{len(cut.left)} runs are"
        raise OutOfTime(f"the time is up and {left} not finished; {advice()}") from None


def saved_run(root: Path, run: str) -> str:
    """What is left of one training that was cut."""
    if not (root / run).exists():
        return f"run {run} had not started; give the same command again"
    return f"run {run} is saved; the same command resumes it"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit: 0 done, 2 the user's mistake, 1 our bug, 3 out of time, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # names of files may be no text, and a terminal may know only ASCII
            stream.reconfigure(errors="backslashreplace")
    code = _run(words, debug)
    if following.part(code):
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def _run(words: list[str], debug: bool) -> int:
    from softtargets.cli.app import app

    try:
        result = app(args=words, prog_name="softtargets", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (Exception, KeyboardInterrupt) as error:
        if following.started():  # whoever started us passes on a signal that we have taken already
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
        code, line = _outcome(error)
        if debug and code in (USER_MISTAKE, BUG) and line:
            raise
        if line:
            sys.stderr.write(printable(line) + "\n")
        return code


def _outcome(error: BaseException) -> tuple[int, str]:
    """The exit code, and the one line to say."""
    import typer

    # typer carries its own copy of click in some versions; its base exception is reached through a public name.
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]
    if isinstance(error, following.Followed):
        return error.code, error.line
    if isinstance(error, Interrupted):
        return INTERRUPTED, str(error)
    if isinstance(error, OutOfTime):
        return OUT_OF_TIME, str(error)
    if isinstance(error, SofttargetsError):
        return USER_MISTAKE, f"error: {error}"
    if isinstance(error, usage_error):
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help; there is nothing to add
            typer.echo(str(getattr(error, "message", "")))
            return USER_MISTAKE, ""
        return USER_MISTAKE, f"error: {_usage_message(error)}"
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return INTERRUPTED, "interrupted"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        return USER_MISTAKE, f"error: cannot write {error.filename or 'the output'}: {error.strerror}"
    failed = f"{type(error).__name__}: {_one_line(error)}"
    return BUG, f"softtargets failed: {failed} (this is a bug; --debug shows where)"


def _usage_message(mistake: Exception) -> str:
    message = _one_line(getattr(mistake, "format_message", lambda: str(mistake))())
    context = getattr(mistake, "ctx", None)
    return f"{message} (see: {context.command_path} --help)" if context else message


def printable(text: str) -> str:
    r"""One line that cannot move the cursor, whatever names are in it.

    >>> printable("class 'a\nb\x1b[2J'")
    "class 'a b?[2J'"
    """
    return "".join(
        c if c.isprintable() or "\udc80" <= c <= "\udcff" else "?" for c in text.replace("\n", " ")
    )


def _one_line(thing: object) -> str:
    return " ".join(str(thing).split())
