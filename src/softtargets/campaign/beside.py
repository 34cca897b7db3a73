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
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from softtargets.campaign.file import PlannedPage
from softtargets.campaign.measuring import measure_page, to_measure
from softtargets.runs import RunStore
from softtargets.studies import Place
from softtargets.training import choose_device, cores, deaf_to_ctrl_c

_PATIENCE = 5.0  # seconds for a process that was told to end
_LOOK = 1.0  # between two looks at whether it is alive


class Beside:
    """Measures for those pages that it can, begun when it is first given something.

    Not for studies that time the device: something else is going on there. Nor for those that cannot be sent to another
    process (of a user who wrote them in a notebook, for instance).
    """

    def __init__(self, pages: Sequence[PlannedPage], store: RunStore, place: Place) -> None:
        self.pages = [page for page in pages if not page.study.timed and _can_be_sent(page)]
        self.failed = False  # died, or could not begin
        self._store, self._place = store, Place(place.data_dir, place.device)
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None
        self._given: list[int] = []  # how many runs each job has that is not answered yet
        self._measured, self._seconds, self._last = 0, 0.0, 0
        self._problems: list[str] = []

    def give(self, keys: Collection[str]) -> None:
        """Have these finished runs measured, as far as there is something to measure; returns at once."""
        if self.failed or not any(to_measure(page, keys, self._store) for page in self.pages):
            return
        if self._connection is None:
            self._begin()
        assert self._connection is not None
        try:
            self._connection.send(sorted(keys))
        except OSError:
            self._give_up()
        else:
            self._given.append(len(keys))
            self._last = len(keys)

    @property
    def busy(self) -> bool:
        """Whether something that was given is not measured yet."""
        self._hear()
        return bool(self._given)

    def seconds_left(self) -> float:
        """How long it would take to measure what was given, and at least another group like the last one."""
        self._hear()
        rate = self._seconds / self._measured if self._measured else 0.0
        return rate * max(sum(self._given), self._last)

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
        if self._connection is not None:
            self._connection.close()
        if self._process is not None:
            self._process.join(0 if self._given else _PATIENCE)
            if self._process.is_alive():
                self._process.kill()
            self._process.join()
        self._connection = self._process = None
        self._given.clear()

    def _begin(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe()
        what = (theirs, self.pages, self._store.root, self._place)
        self._process = spawn.Process(target=_measure_what_comes, args=what, daemon=True, name="measuring")
        with deaf_to_ctrl_c():
            self._process.start()
        theirs.close()

    def _hear(self) -> None:
        if not self._given:
            return
        assert self._connection is not None
        assert self._process is not None
        # Asked first: it may answer and then die. A pipe may stay open without it, held by a compiler that it began.
        alive = self._process.is_alive()
        try:
            while self._given and self._connection.poll():
                problems, seconds = self._connection.recv()
                self._measured += self._given.pop(0)
                self._seconds += seconds
                self._problems += problems
        except (EOFError, OSError):
            alive = False
        if self._given and not alive:
            self._give_up()

    def _give_up(self) -> None:
        self.failed = True
        self._given.clear()
        self._problems.append(
            "The process that measures beside the training has died; measuring goes on without it."
        )
        self.close()


def _can_be_sent(page: PlannedPage) -> bool:
    if not any(entry.trials for entry in page.entries):
        return False
    try:
        pickle.dumps(page)
    except Exception:  # whatever pickle says of a function that has no name in a module
        return False
    return True


def _measure_what_comes(connection: Connection, pages: list[PlannedPage], root: Path, place: Place) -> None:
    """The life of the process: it ends when its parent closes the connection, or dies."""
    with suppress(AttributeError, OSError):  # not everywhere
        os.nice(10)  # who trains goes first
    torch.set_num_threads(max(1, cores() // 2))
    try:
        torch.zeros(1, device=choose_device(place.device))
    except Exception:
        # A GPU that only one process may use, for instance: the parent notices that this one is gone.
        return
    store = RunStore(root)
    with suppress(EOFError, OSError):
        while True:
            keys = set(connection.recv())
            begun = time.monotonic()
            problems = [problem for page in pages for problem in measure_page(page, keys, store, place)]
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()  # it may be wanted for the next pack
            connection.send((problems, time.monotonic() - begun))
