"""What earlier looks at a store have found of its finished runs: in memory, and in a file for other processes.

Entries are only believed while the manifest of their run has the time and the size that it had. So the index may be
old, damaged or gone; runs are then read again.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from softtargets.exceptions import StorageError
from softtargets.storage import read_json, write_atomically

INDEX = "index.json"
INDEX_FORMAT = 1
# The file is written whole. If that were done for every run that ends, a store of n runs would cost n squared; so it
# waits until one in so many entries is new, and those few are read from their runs by whoever looks meanwhile.
NEW_ONE_IN = 64


@dataclass(frozen=True)
class ListedRun:
    """A run as a listing shows it.

    `status` is finished, failed, running, interrupted (has a checkpoint), empty (has none) or damaged. A `light` run is
    finished, and its weights are not here.
    """

    id: str
    status: str
    recipe: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    finished: str | None = None
    light: bool = False


class Stamp(NamedTuple):
    """By which a file that was replaced is told from the one before."""

    nanoseconds: int
    bytes: int


class Noted(NamedTuple):
    """An entry, and the stamp of the manifest that it was read from."""

    stamp: Stamp
    entry: ListedRun


def stamp_of(path: str | Path) -> Stamp | None:
    """Of a file as it is now; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(found.st_mtime_ns, found.st_size)


class RunIndex:
    """The entries of one store, by run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: Stamp | None = None  # of the file that was read or written last
        self._written: dict[str, Noted] = {}  # what that file says
        self._known: dict[str, Noted] = {}

    def read(self) -> Mapping[str, Noted]:
        """All that is known; the file is only read if it has changed."""
        stamp = stamp_of(self._path)
        if stamp is None or stamp != self._stamp:
            self._stamp, self._written = stamp, _read(self._path)
            self._known = self._known | self._written
        return self._known

    def keep(self, fresh: dict[str, Noted]) -> None:
        """Remember these and no others; write them down where enough of them are new."""
        self._known = fresh
        there = self._written
        new = sum(name not in there or there[name].stamp != one.stamp for name, one in fresh.items())
        gone = sum(name not in fresh for name in there)
        if new + gone > len(there) // NEW_ONE_IN:
            self._write(fresh)

    def _write(self, fresh: dict[str, Noted]) -> None:
        runs = {name: {"stamp": one.stamp, "entry": vars(one.entry)} for name, one in fresh.items()}
        content = json.dumps({"format": INDEX_FORMAT, "runs": runs}, separators=(",", ":"))
        with suppress(StorageError):  # a listing must also work where nothing may be written
            write_atomically(self._path, content.encode())
            self._stamp, self._written = stamp_of(self._path), fresh


def _read(path: Path) -> dict[str, Noted]:
    try:
        with _without_collecting():
            index = read_json(path, most=1 << 30)
            if index["format"] != INDEX_FORMAT:
                return {}
            listed = {
                name: Noted(Stamp(*one["stamp"]), ListedRun(**one["entry"]))
                for name, one in index["runs"].items()
            }
            return {
                name: one for name, one in listed.items() if one.entry.id == name and _is_entry(one.entry)
            }
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return {}  # no index, or one of another version: the runs themselves are read again


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Python looks for garbage as objects are made: of a million, that takes three times as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_entry(entry: ListedRun) -> bool:
    texts = isinstance(entry.status, str) and isinstance(entry.finished, str | None)
    parts = isinstance(entry.recipe, dict) and isinstance(entry.summary, dict)
    flags = isinstance(entry.light, bool)
    return texts and parts and flags and isinstance(entry.seconds, int | float | None)
