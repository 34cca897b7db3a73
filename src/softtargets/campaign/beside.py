"""A process that measures finished runs while its parent trains the next ones on the same GPU.

Measuring a translation model (nine translations of a test set, for instance) may take as long as training it in a pack,
and much of that is the work of one core, while the GPU waits. What is measured is the same: it is made from the weights
in the store.

The process only ever saves time. What it did not measure, because it failed or was killed, its parent measures itself.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

import torch

from softtargets.campaign.file import PlannedPage
from softtargets.campaign.measuring import measure_page, to_measure
from softtargets.runs import RunStore
from softtargets.studies import Place
from softtargets.training import choose_device, cores, deaf_to_ctrl_c

# Memory of a GPU from which on two processes share it: packs are made to fill it, and do not know of each other.
ROOMY = 40 << 30
_PATIENCE = 5.0  # seconds for a process that was told to end
_LOOK = 1.0  # between two looks at whether the other process is alive
# Seconds for each run until it is known: of studies that compute with the model again, of others, and of all at most.
_AGAIN, _STORED, _MOST = 10.0, 0.5, 120.0
_Counts = dict[str, int]  # by page, how many runs there are to measure


class Beside:
    """Measures for those pages that it can, begun when it is first given something.

    Not for studies that time the device: something else is going on there. Nor for those that cannot be sent to another
    process (of a user who wrote them in a notebook, for instance).
    """

    def __init__(self, pages: Sequence[PlannedPage], store: RunStore, place: Place) -> None:
        self.pages = [page for page in pages if not page.study.timed and _can_be_sent(page)]
        self.failed = False  # died, or could not begin
        self.answers = 0  # how often something was measured
        self._store, self._place = store, Place(place.data_dir, place.device)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None
        self._letters: SimpleQueue[list[PlannedPage] | None] = SimpleQueue()
        self._given: list[_Counts] = []  # jobs that are not answered yet
        self._last: _Counts = {}
        self._rates: dict[str, float] = {}  # seconds for each run, by page
        self._prior = {page.name: _AGAIN if page.study.again else _STORED for page in self.pages}
        self._problems: list[str] = []

    def give(self, keys: Collection[str]) -> None:
        """Have these finished runs measured, as far as there is something to measure; returns at once."""
        if self.failed:
            return
        wanted = set(keys)
        job = [part for page in self.pages if (part := _part(page, wanted, self._store)) is not None]
        if not job:
            return
        if self._process is None:
            try:
                self._begin()
            except Exception:  # no process, no pipe, no device: then without
                self._give_up()
                return
        self._last = {page.name: sum(len(entry.trials) for entry in page.entries) for page in job}
        self._given.append(self._last)
        self._letters.put(job)

    @property
    def busy(self) -> bool:
        """Whether something that was given is not measured yet."""
        self._hear()
        return bool(self._given)

    def seconds_left(self) -> float:
        """How long it should take to measure what was given, and is not measured yet."""
        self._hear()
        return sum(map(self._estimate, self._given))

    def seconds_for_another(self) -> float:
        """How long it should take to measure another group like the last one."""
        self._hear()
        return self._estimate(self._last)

    def wait(self) -> None:
        """Until everything is measured that was given, or it cannot be."""
        while self.busy:
            assert self._connection is not None
            self._connection.poll(_LOOK)

    def problems(self) -> list[str]:
        """What went wrong since this was last asked for, in sentences."""
        self._hear()
        found, self._problems = self._problems, []
        return found

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._letters.put(None)
        if self._connection is not None:
            self._connection.close()
        if self._process is not None and self._process.pid is not None:
            self._process.join(0 if self._given else _PATIENCE)
            if self._process.is_alive():
                self._process.kill()
            self._process.join()
        self._connection = self._process = None
        self._given.clear()

    def _estimate(self, job: Mapping[str, int]) -> float:
        known = sum(self._rates[name] * count for name, count in job.items() if name in self._rates)
        guessed = sum(self._prior[name] * count for name, count in job.items() if name not in self._rates)
        return known + min(guessed, _MOST)

    def _begin(self) -> None:
        # Before the other process does: of a GPU that only one may use, this one is to have it.
        torch.zeros(1, device=choose_device(self._place.device))
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        # Little: what is sent at the start is waited for, also if the process dies before it has read that.
        what = (theirs, self._store.root, self._place, os.getpid())
        self._process = spawn.Process(target=_measure_what_comes, args=what, daemon=True, name="measuring")
        with deaf_to_ctrl_c():
            self._process.start()
        theirs.close()
        threading.Thread(target=_send, args=(self._letters, self._connection), daemon=True).start()

    def _hear(self) -> None:
        if not self._given:
            return
        assert self._connection is not None
        assert self._process is not None
        # Asked first: it may answer and then die. A pipe may stay open without it, held by a compiler that it began.
        alive, closed = self._process.is_alive(), False
        try:
            while self._given and self._connection.poll():
                job = self._given.pop(0)  # first, so that Ctrl-C does not leave one that nobody answers
                problems, seconds = self._connection.recv()
                self._rates |= {name: seconds[name] / count for name, count in job.items()}
                self._problems += problems
                self.answers += 1
        except (EOFError, OSError):
            closed = True
        if closed or (self._given and not alive):
            self._give_up()

    def _give_up(self) -> None:
        self.failed = True
        self._given.clear()
        self._problems.append(
            "The process that measures beside the training has died; measuring goes on without it."
        )
        self.close()


def has_room(device: torch.device) -> bool:
    """Whether a device is a GPU with memory for two processes."""
    return device.type == "cuda" and torch.cuda.get_device_properties(device).total_memory >= ROOMY


def _can_be_sent(page: PlannedPage) -> bool:
    if not any(entry.trials for entry in page.entries):
        return False
    try:
        content = pickle.dumps(page)
    except Exception:  # whatever pickle says of a function that has no name in a module
        return False
    return b"__main__" not in content  # which is another module there


def _part(page: PlannedPage, keys: set[str], store: RunStore) -> PlannedPage | None:
    """A page with those of these runs alone that are to be measured; None where there are none."""
    wanted = to_measure(page, keys, store)
    if not wanted:
        return None
    entries = (
        replace(entry, trials=tuple(trial for trial in entry.trials if trial.recipe.id in wanted))
        for entry in page.entries
    )
    return replace(page, entries=tuple(entry for entry in entries if entry.trials))


def _send(letters: SimpleQueue[list[PlannedPage] | None], connection: Connection) -> None:
    """The life of a thread, since the other process may not read before it has measured what it has."""
    with suppress(Exception):  # whoever asks for answers notices what is wrong
        while (letter := letters.get()) is not None:
            connection.send(letter)


def _measure_what_comes(connection: Connection, root: Path, place: Place, parent: int) -> None:
    """The life of the process: it ends when its parent closes the connection, or dies."""
    with suppress(AttributeError, OSError):  # not everywhere
        os.nice(10)  # who trains goes first
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(max(1, cores() // 2))
    try:
        torch.zeros(1, device=choose_device(place.device))
    except Exception:  # a GPU that only one process may use: the parent notices that this one is gone
        return
    store = RunStore(root)
    with suppress(EOFError, OSError):
        while True:
            problems, seconds = [], {}
            for page in connection.recv():
                begun = time.monotonic()
                keys = {trial.recipe.id for entry in page.entries for trial in entry.trials}
                problems += measure_page(page, keys, store, place)
                seconds[page.name] = time.monotonic() - begun
            # Corpora and memory of the device may be wanted for the next pack.
            place.supplies.clear()
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
            connection.send((problems, seconds))


def _end_with(parent: int) -> None:
    """A parent that is killed in the middle of a measurement must not leave somebody on its GPU."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os._exit(1)
