"""More processes for many small runs on one machine.

Helpers call the engine on the same recipes and the same store; the locks in the store share the work out.
They only ever save time: what a helper did not finish, because it failed or was killed, the caller trains
itself, so nobody needs to hear from them.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

from softtargets.recipes import Recipe
from softtargets.runs import RunStore
from softtargets.training.events import Watcher


def cores() -> int:
    """The processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def helpers(
    count: int, train: Callable[..., Any], recipes: list[Recipe], store: RunStore, **how: Any
) -> Iterator[None]:
    """Keep `count` processes busy on the same recipes while the block runs; share the cores fairly."""
    if count < 1:
        yield
        return
    before = torch.get_num_threads()
    threads = max(1, cores() // (count + 1))
    spawn = multiprocessing.get_context("spawn")
    work = partial(train, recipes, store, watcher=_StopWithParent(os.getpid()), **how)
    processes = [spawn.Process(target=_help, args=(work, threads), daemon=True) for _ in range(count)]
    torch.set_num_threads(threads)
    try:
        with deaf_to_ctrl_c():
            for process in processes:
                process.start()
        yield
    finally:
        torch.set_num_threads(before)
        for process in processes:
            process.terminate()  # a helper still at work takes this as Ctrl-C: it saves and goes
        for process in processes:
            process.join()


@contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """What starts here ignores Ctrl-C, which a terminal sends to all at once; the parent passes it on in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _StopWithParent(Watcher):
    """Ends a helper whose parent was killed without a chance to say so."""

    def __init__(self, parent: int) -> None:
        self._parent = parent

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        if os.getppid() != self._parent:
            os.kill(os.getpid(), signal.SIGTERM)  # taken between two steps, like any other request to stop


def _help(work: Callable[[], Any], threads: int) -> None:
    torch.set_num_threads(threads)
    # Whatever goes wrong here goes wrong in the caller too, who has a user to tell.
    with suppress(BaseException):
        work()
