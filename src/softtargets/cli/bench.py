"""``softtargets bench``: hands over to the benchmarks, which live beside the sources and not in the wheel."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

import softtargets
from softtargets.exceptions import SofttargetsError

# Words and --help go to the benchmarks as they are.
AS_THEY_ARE = {"allow_extra_args": True, "ignore_unknown_options": True}


def bench(context: typer.Context) -> None:
    """Benchmarks: ours against others, as ratios of one run (from a checkout: python -m benchmarks)."""
    checkout = Path(softtargets.__file__).parents[2]
    if not (checkout / "benchmarks" / "command.py").is_file():
        raise SofttargetsError(
            "the benchmarks are not in the installed package: run python -m benchmarks in a checkout of the source "
            "repository"
        )
    sys.path.insert(0, str(checkout))
    command = import_module("benchmarks.command")
    command.app(args=context.args, prog_name=command.PROGRAM, standalone_mode=False)
