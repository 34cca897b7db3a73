"""Runs that travel between the head and workers that do not share its directory of runs.

They travel as pack files do (`softtargets.runs.pack_runs`, `merge_runs`): checked on arrival, nothing doubled, what
disagrees named. The head holds the locks of runs that are trained for it elsewhere, so that nobody else begins them.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softtargets.exceptions import RunError, StorageError
from softtargets.executors.ray.orders import Probe
from softtargets.recipes import Recipe
from softtargets.runs import EXTRAS, Merged, Run, RunStore, RunWriter, merge_runs, pack_runs
from softtargets.storage import Lock, acquire, is_held, make_directory, write_atomically


def packed(run: Run) -> bytes | None:
    """A run with all its files, or its checkpoint if it is not finished; None if there is nothing of it yet."""
    with tempfile.TemporaryDirectory(prefix="softtargets-") as directory:
        path = Path(directory) / "run.zip"
        try:
            pack_runs([run], path, EXTRAS)
        except RunError:
            return None
        return path.read_bytes()


def unpack(content: bytes, store: RunStore, replace: bool = False) -> Merged:
    """Take what `packed` gave into a store."""
    with tempfile.TemporaryDirectory(prefix="softtargets-") as directory:
        path = Path(directory) / "run.zip"
        path.write_bytes(content)
        return merge_runs(path, store, replace)


class HeadStore(RunStore):
    """The head's runs, some of which it holds for workers elsewhere: these it may write although they are claimed.

    `locks` is a directory for locks, where the file system of the runs has none.
    """

    def __init__(self, root: Path, locks: Path | None = None) -> None:
        super().__init__(root)
        self._locks = locks
        self._held: dict[str, RunWriter] = {}

    @property
    def locks_files(self) -> bool:
        """Whether its file system can lock files."""
        return self._locks is None

    def hold(self, recipe: Recipe) -> bool:
        """Take the right to write a run, for a worker; False while another process has it."""
        if recipe.id not in self._held:
            writer = self.claim(recipe)
            if writer is None:
                return False
            self._held[recipe.id] = writer
        return True

    def let_go(self, key: str) -> None:
        """Give the right back, if it is held."""
        if (writer := self._held.pop(key, None)) is not None:
            writer.release()

    def let_all_go(self) -> None:
        """Give all rights back."""
        for key in list(self._held):
            self.let_go(key)

    def claim(self, recipe: Recipe) -> RunWriter | None:
        """As for every store; of a run that is held, a writer that gives nothing back."""
        if recipe.id in self._held:
            return RunWriter(self.root / recipe.id, recipe, _Kept())
        if self._locks is None:
            return super().claim(recipe)
        make_directory(self.root / recipe.id)
        lock = acquire(self._locks / recipe.id)
        return None if lock is None else RunWriter(self.root / recipe.id, recipe, lock)

    def is_claimed(self, recipe: Recipe) -> bool:
        """Whether somebody has the right to write a run at the moment."""
        return super().is_claimed(recipe) if self._locks is None else is_held(self._locks / recipe.id)

    def take_in(self, content: bytes, recipe: Recipe) -> list[str]:
        """Write what has come of a run; returns sentences about what could not be taken."""
        before = Run(self.root / recipe.id)
        light = (before.directory / "run.json").exists() and before.is_light
        merged = unpack(content, self, replace=light)
        busy = [f"run {key} is being written by another process" for key in merged.busy]
        return [*map(str, merged.conflicts), *merged.refused, *busy]


class _Kept(Lock):
    """Stands for a lock that somebody else gives back."""

    def __init__(self) -> None:
        super().__init__(Path(), -1)


@contextmanager
def probing(store: HeadStore) -> Iterator[Probe]:
    """Files by which workers find out whether they share a store; those of killed heads are removed."""
    for path in store.root.glob(".probe-*.lock"):
        if not is_held(path):
            path.with_suffix(".token").unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    name = secrets.token_hex(8)
    probe = Probe(store.root / f".probe-{name}.token", name, store.root / f".probe-{name}.lock")
    lock = acquire(probe.lock_file) if store.locks_files else None
    write_atomically(probe.token_file, name.encode())
    try:
        yield probe
    finally:
        probe.token_file.unlink(missing_ok=True)
        if lock is not None:
            lock.release()


def head_store(root: Path) -> HeadStore:
    """The store of the head; where its file system cannot lock, locks are on this machine's own disk."""
    make_directory(root)
    trial = root / f".lock-{os.getpid()}"
    try:
        lock = acquire(trial)
    except StorageError:
        return HeadStore(root, own_directory(f"locks-{hashlib.sha256(str(root).encode()).hexdigest()[:16]}"))
    assert lock is not None
    lock.release()
    return HeadStore(root)


def own_directory(name: str) -> Path:
    """A directory of this user on the disk of this machine, for what does not outlive it."""
    base = Path(tempfile.gettempdir()) / f"softtargets-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    make_directory(base / name)
    return base / name
