"""Commands in processes that torchrun has started: the first one does all that it would do alone, the others follow."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from softtargets.exceptions import SofttargetsError


class Followed(Exception):
    """A process that did as another one said ends as that one did; with a line if nobody else would say it."""

    def __init__(self, code: int, line: str = "") -> None:
        super().__init__(line)
        self.code, self.line = code, line


def started() -> bool:
    """Whether this is one of several processes that were started together."""
    return "RANK" in os.environ


def is_first_here() -> bool:
    """Whether no process of this machine comes before this one."""
    return os.environ.get("LOCAL_RANK", "0") == "0" or not started()


def digest(words: Iterable[str]) -> str:
    """A few letters by which lists can be told apart.

    >>> digest(["a", "b"]) == digest(["a", "b"]) != digest(["ab"])
    True
    """
    whole = "\n".join(words).encode()
    return hashlib.sha256(whole).hexdigest()[:16]


def follow(
    device: str,
    runs_dir: Path | None,
    data_dir: Path | None,
    *,
    executor: str = "local",
    workers: int | None = None,
    facts: Mapping[str, str],
) -> None:
    """Return in the first process, and in one that is alone; any other trains with the first one, and ends as it does.

    facts:  what must be the same in all processes, by name.
    """
    if not started():
        return
    if executor != "local":
        _refuse(
            f"--executor {executor} starts processes of its own, but torchrun has already started these: leave out "
            "one of the two"
        )
    if workers is not None and workers > 1:
        _refuse(
            f"--workers {workers} cannot be used under torchrun, whose processes train every run together; leave it "
            "out"
        )
    from softtargets.cli.options import run_store
    from softtargets.training import attend

    parted = attend(device, run_store(runs_dir), data_dir, facts)
    if parted is not None:
        raise Followed(parted.code, parted.line)


def _refuse(words: str) -> NoReturn:
    """In all processes, which were given the same command; one says it."""
    if os.environ["RANK"] == "0":
        raise SofttargetsError(words)
    raise Followed(2)


def part(code: int) -> bool:
    """Say to the other processes, if there are any, that this one ends; whether one of them was lost."""
    there = sys.modules.get("softtargets.training.distributed")
    return there is not None and there.leave(code)
