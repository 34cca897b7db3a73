"""The directory of runs: finding, claiming, listing and deleting them."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softtargets.exceptions import RunError, StorageError, nearest
from softtargets.recipes import Recipe
from softtargets.runs.index import INDEX, ListedRun, Noted, RunIndex, stamp_of
from softtargets.runs.run import CHECKPOINT, LOCK, MANIFEST, RECIPE, Run
from softtargets.runs.writer import RunWriter
from softtargets.storage import (
    acquire,
    is_held,
    make_directory,
    read_json,
    storage_errors,
)

SHORTEST_PREFIX = 4
_ID = re.compile(r"[0-9a-f]{16}")


class RunStore:
    """All runs under one directory, one subdirectory per recipe, named by the recipe's hash.

    The files are the truth. ``index.json`` only saves reading thousands of small files again; an entry is
    used while its run's manifest has the recorded time and size, and the whole index may be deleted.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._index = RunIndex(self.root / INDEX)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_index": RunIndex(self.root / INDEX)}  # another process looks for itself

    def __repr__(self) -> str:
        return f"RunStore({str(self.root)!r})"

    def find(self, recipe: Recipe) -> Run | None:
        """The concluded run of a recipe, checked for damage that can be seen without reading it all."""
        run = Run(self.root / recipe.id)
        if not (run.directory / MANIFEST).exists():
            return None
        if problems := run.problems(thorough=False, of=recipe):
            advice = f"`softtargets runs delete {run.id}`, then train it again"
            raise RunError(f"{problems[0]}; run {run.id} is damaged, other runs are not affected: {advice}")
        return run

    def claim(self, recipe: Recipe) -> RunWriter | None:
        """The right to write a run, or None while another process has it."""
        directory = self.root / recipe.id
        while True:
            make_directory(directory)
            try:
                lock = acquire(directory / LOCK)
                break
            except StorageError:
                # Deleted by another process between the two lines above: make it again.
                if directory.is_dir():
                    raise
        if lock is None:
            return None
        try:
            return RunWriter(directory, recipe, lock)
        except BaseException:
            lock.release()
            raise

    def is_claimed(self, recipe: Recipe) -> bool:
        """Whether a process, this one included, has the right to write a run at the moment."""
        return is_held(self.root / recipe.id / LOCK)

    def get(self, prefix: str) -> Run:
        """A run by its id or the beginning of it, as git takes commits."""
        if len(prefix) < SHORTEST_PREFIX:
            raise RunError(
                f"'{prefix}' is too short: give at least the first {SHORTEST_PREFIX} digits of a run's id"
            )
        if _ID.fullmatch(prefix) and os.path.lexists(self.root / prefix):
            return Run(self.root / prefix)  # its whole id: no other can be meant
        matches = [name for name in self._ids() if name.startswith(prefix)]
        if len(matches) == 1:
            return Run(self.root / matches[0])
        if matches:
            raise RunError(f"'{prefix}' could be any of {len(matches)} runs: {', '.join(matches[:4])} ...")
        raise RunError(f"no run '{prefix}' in {self.root}; `softtargets runs list` shows what is there")

    def delete(self, prefix: str) -> str:
        """Delete one run, unless a process is writing it."""
        run = self.get(prefix)
        if run.directory.is_symlink():
            raise RunError(
                f"{run.directory} is a link to a run that is stored elsewhere; remove the link yourself"
            )
        if not run.directory.exists():
            raise RunError(f"run {run.id} is gone: another process deleted it")
        if not run.directory.is_dir():
            raise RunError(f"{run.directory} is a file, not a run; remove it yourself")
        lock = acquire(run.directory / LOCK)
        if lock is None:
            raise RunError(f"run {run.id} is being written right now; stop that process first")
        # Out of the way in one step, so that nobody claims a run that is half gone.
        grave = run.directory.with_name(f".deleted-{run.id}-{secrets.token_hex(4)}")
        try:
            with storage_errors(run.directory, "delete"):
                run.directory.rename(grave)
                shutil.rmtree(grave)
        finally:
            lock.release()
        return run.id

    def entries(self, where: Mapping[str, Any] | None = None) -> list[ListedRun]:
        """Every run, newest first; `where` keeps those whose recipe has the given dotted values.

        A slot may be given by the name of what is in it: ``{"model": "mlp", "regulariser.alpha": 0.1}``.
        """
        known = self._index.read()
        fresh: dict[str, Noted] = {}
        found = []
        for name in self._ids():
            stamp, old = stamp_of(f"{self.root}/{name}/{MANIFEST}"), known.get(name)
            if old is not None and old.stamp == stamp:
                found.append(old.entry)
                fresh[name] = old
            elif entry := _read_entry(self.root / name):
                found.append(entry)
                if stamp is not None and entry.status != "damaged":
                    fresh[name] = Noted(stamp, entry)
        self._index.keep(fresh)
        found.sort(key=lambda entry: (entry.finished or "~", entry.id), reverse=True)
        return [entry for entry in found if not where or _matches(entry.recipe, where)]

    def _ids(self) -> list[str]:
        try:
            return [item.name for item in os.scandir(self.root) if _ID.fullmatch(item.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"cannot read the runs in {self.root}: {error.strerror}") from None


def check_filter(entries: list[ListedRun], where: Mapping[str, Any]) -> None:
    """Refuse a filter on a field that no listed run has; most likely it is misspelt."""
    paths = {path for entry in entries for path in _by_path(entry.recipe)}
    for path in where:
        if entries and path not in paths:
            raise RunError(f"no run has a recipe field '{path}'{nearest(path, paths)}")


def _matches(recipe: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    values = _by_path(recipe)
    return all(values.get(path) == wanted for path, wanted in where.items())


def _by_path(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a recipe by their dotted paths; that of a slot is the name of what is in it."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= {prefix + key: value.get("name")} | _by_path(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def _unfinished(directory: Path) -> str:
    begun = (directory / CHECKPOINT).exists()
    return "running" if is_held(directory / LOCK) else "interrupted" if begun else "empty"


def _read_entry(directory: Path) -> ListedRun | None:
    """A run as it is at this moment; None if another process has just deleted it."""
    run = Run(directory)
    try:
        recipe = read_json(directory / RECIPE)
    except FileNotFoundError:
        # The recipe is the first thing that whoever has the lock will write.
        status = _unfinished(directory)
        known = status in ("running", "empty") and not (directory / MANIFEST).exists()
        return ListedRun(run.id, status if known else "damaged") if directory.exists() else None
    except (OSError, ValueError):
        return ListedRun(run.id, "damaged")
    if not isinstance(recipe, dict):
        return ListedRun(run.id, "damaged")
    if not (directory / MANIFEST).exists():
        return ListedRun(run.id, _unfinished(directory), recipe)
    try:
        seconds, finished = (run.provenance.get(key) for key in ("seconds", "finished"))
        return ListedRun(run.id, run.status, recipe, run.summary, seconds, finished, run.is_light)
    except RunError:
        return ListedRun(run.id, "damaged", recipe)
