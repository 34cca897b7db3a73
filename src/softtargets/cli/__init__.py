"""The command line. Thin: every command is a few lines around a function of another room, imported late."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from softtargets.exceptions import SofttargetsError

USER_MISTAKE, BUG, INTERRUPTED = 2, 1, 130


class Interrupted(SofttargetsError):
    """Ctrl-C, after everything was saved."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit: 0 done, 2 the user's mistake, 1 our bug, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    sys.exit(_run(words, debug))


def _run(words: list[str], debug: bool) -> int:
    import typer

    from softtargets.cli.app import app

    try:
        result = app(args=words, prog_name="softtargets", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (Interrupted, KeyboardInterrupt, typer.Abort) as interruption:
        _say(str(interruption) if isinstance(interruption, Interrupted) else "interrupted")
        return INTERRUPTED
    except Exception as problem:
        if type(problem).__name__ == "NoArgsIsHelpError":  # the help has been shown; there is nothing to add
            return USER_MISTAKE
        if debug:
            raise
        # typer carries its own copy of click in some versions; its base exception is reached through a public name.
        return _told(problem, usage_error=typer.BadParameter.__mro__[2])


def _told(problem: Exception, usage_error: type) -> int:
    if isinstance(problem, usage_error):
        _say(f"error: {_usage_message(problem)}")
    elif isinstance(problem, SofttargetsError):
        _say(f"error: {problem}")
    else:
        what = f"{type(problem).__name__}: {_one_line(problem)}"
        _say(f"softtargets failed: {what} (this is a bug; --debug shows where)")
        return BUG
    return USER_MISTAKE


def _usage_message(mistake: Exception) -> str:
    message = _one_line(getattr(mistake, "format_message", lambda: str(mistake))())
    context = getattr(mistake, "ctx", None)
    return f"{message} (see: {context.command_path} --help)" if context else message


def _one_line(thing: object) -> str:
    return " ".join(str(thing).split())


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
