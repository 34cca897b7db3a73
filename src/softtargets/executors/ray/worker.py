"""What runs on a worker: the engine, told what to train, in the memory of one process of a Ray cluster.

Ray calls `work` in one thread, and `news` and `stop` in others (the group ``control``).
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

import softtargets
from softtargets.exceptions import RunError, StorageError, Unfinished
from softtargets.executors.ray.carrying import own_directory, packed, unpack
from softtargets.executors.ray.orders import Hello, Inspected, News, Order, Outcome, Place, Probe, Refusal
from softtargets.executors.ray.relay import Relay
from softtargets.recipes import Recipe
from softtargets.runs import ENGINE, Run, RunStore
from softtargets.storage import Lock, acquire, is_held
from softtargets.training import Resources, checked_units, choose_device, train

DATA = "SOFTTARGETS_DATA"
_CARRY_SECONDS = 1.0  # between two checkpoints of one run that travel


def versions() -> dict[str, str]:
    """What must be the same on the head and its workers."""
    return {
        "softtargets": f"{softtargets.__version__} (engine {ENGINE})",
        "python": ".".join(platform.python_version_tuple()[:2]),
        "torch": str(torch.__version__).partition("+")[0],
    }


class Worker:
    """One process with one device, or a share of it; made into an actor by the head."""

    def __init__(self) -> None:
        self._relay = Relay()
        self._stop = threading.Event()
        self._own: _OwnDirectory | None = None
        self._resources: Resources | None = None
        self._stayed: object = None  # what the resources were loaded for
        self._sent: dict[str, tuple[int, float]] = {}  # checkpoints that have travelled: their time, and when

    def arrive(self, place: Place, probe: Probe, carry: bool) -> Hello | Refusal:
        """Take a place; called before the first order of every call of the executor."""
        self._stop.clear()
        self._place = place
        self._shares = not carry and _sees(probe)
        try:
            if not self._shares and self._own is None:
                self._own = _OwnDirectory()
            device = choose_device(place.device)
        except Exception as error:
            return Refusal.of(error, traceback.format_exc())
        root = place.store if self._own is None or self._shares else self._own.path
        stays = (root, device, self._data_dir())
        if self._resources is None or stays != self._stayed:
            self._resources, self._stayed = Resources(RunStore(root), device, self._data_dir()), stays
        return Hello(platform.node(), os.getpid(), versions(), self._shares)

    def inspect(self, recipes: Iterable[Recipe]) -> Inspected | Refusal:
        """Look at recipes with the data at hand; what cannot be trained is refused before anything is."""
        recipes, resources = list(recipes), self._there()
        self._set_threads()
        try:
            units = checked_units(recipes, resources)
            together = {recipe.id: resources.arrangement(recipe).runs for recipe in recipes}
        except Exception as error:
            return Refusal.of(error, traceback.format_exc())
        return Inspected(units, together)

    def work(self, order: Order, *packs: bytes) -> Outcome:
        """Train; `packs` are teachers and checkpoints that have travelled here."""
        resources = self._there()
        self._set_threads()
        self._relay.begin(order.ids)
        refusal = None
        try:
            for pack in packs:
                if refused := unpack(pack, resources.store).refused:
                    raise RunError(refused[0])
            self._train(order, resources)
        except (Unfinished, KeyboardInterrupt):
            pass
        except Exception as error:
            refusal = Refusal.of(error, traceback.format_exc())
        finally:
            self._relay.end()
        left = tuple(key for key in order.ids if key not in self._relay.ended)
        return Outcome(left, refusal, self._told(0.0, left))

    def _train(self, order: Order, resources: Resources) -> None:
        train(
            order.recipes,
            resources.store,
            device=self._place.device,
            keep=order.keep,
            watcher=self._relay,
            progress=False,
            checkpoint_seconds=order.checkpoint_seconds,
            beside=self._place.beside,
            until=None if order.seconds is None else time.monotonic() + order.seconds,
            wait=False,
            resources=resources,
            afresh=order.afresh,
            stop=self._stop,
        )

    def news(self, seconds: float) -> News:
        """What has happened; waits so long for something to happen."""
        return self._told(seconds, ())

    def stop(self) -> None:
        """Ask for the end of what is trained, as Ctrl-C does."""
        self._stop.set()

    def leave(self) -> None:
        """Remove what was only kept for this worker."""
        if self._own is not None:
            self._own.remove()

    def _told(self, seconds: float, left: Iterable[str]) -> News:
        """Events and, where runs travel, what has ended and what has got further; of those `left` the last state."""
        events = self._relay.take(seconds)
        if self._shares:
            return News(events)
        packs: dict[str, bytes] = {}
        store = self._there().store
        for kind, key, _ in events:
            if kind == "finished" and key not in packs and (content := packed(Run(store.root / key))):
                packs[key] = content
                store.delete(key)  # if it is to teach, it comes back with its students
        for key in (*self._relay.under_way, *left):
            if key not in packs and (content := self._checkpoint(key, store, at_once=key in left)):
                packs[key] = content
        return News(events, packs)

    def _checkpoint(self, key: str, store: RunStore, at_once: bool) -> bytes | None:
        """The checkpoint of a run, if it is another than that which travelled last."""
        try:
            written = (store.root / key / "checkpoint.safetensors").stat().st_mtime_ns
        except OSError:
            return None
        before, sent = self._sent.get(key, (0, 0.0))
        if written == before or (not at_once and time.monotonic() - sent < _CARRY_SECONDS):
            return None
        self._sent[key] = written, time.monotonic()
        return packed(Run(store.root / key))

    def _there(self) -> Resources:
        assert self._resources is not None, "a worker takes its place before it works"
        return self._resources

    def _set_threads(self) -> None:
        torch.set_num_threads(self._place.threads)  # of this thread: torch has a number for each

    def _data_dir(self) -> Path | None:
        """Where data are: what the call says; else what this machine says; else where the head has them."""
        place = self._place
        if place.data_dir is not None or os.environ.get(DATA):
            return place.data_dir
        return place.data_hint if place.data_hint is not None and place.data_hint.is_dir() else None


def _sees(probe: Probe) -> bool:
    """Whether the head's runs can be read, written and locked from here."""
    try:
        if probe.token_file.read_text(encoding="ascii") != probe.token or not is_held(probe.lock_file):
            return False
        with tempfile.TemporaryFile(dir=probe.token_file.parent):
            return True
    except (OSError, ValueError, StorageError):
        return False


class _OwnDirectory:
    """A directory for this process; what killed ones have left is removed by the next."""

    def __init__(self) -> None:
        base = own_directory("workers")
        for path in base.iterdir():
            if path.is_dir() and (lock := acquire(path.with_suffix(".lock"))) is not None:
                shutil.rmtree(path, ignore_errors=True)
                lock.release()
        self.path = base / secrets.token_hex(8)
        self._lock: Lock | None = acquire(
            self.path.with_suffix(".lock")
        )  # before there is anything to remove
        self.path.mkdir()

    def remove(self) -> None:
        """With all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            self._lock.release()


def as_actor(ray: Any, **sized: Any) -> Any:
    """The class of worker actors, of these resources."""
    return ray.remote(concurrency_groups={"control": 2}, max_restarts=0, max_task_retries=0, **sized)(Worker)
