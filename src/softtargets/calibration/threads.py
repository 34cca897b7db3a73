"""Threads of a CPU where they help, and none where they do not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

import torch

T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[int]:
    """Operations inside use one thread; gives the number outside.

    Many small operations are slowed down by sharing each of them among several threads, and threads that have shared
    one keep a processor busy while they wait for the next.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # of operations started by this thread of Python; others have their own number
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def shared(work: Callable[[int], T], tasks: Iterable[int], helpers: Executor, count: int) -> Iterator[T]:
    """What comes of each task, in their order, while so many helpers do some of them.

    Whoever is free takes the next. The order does not depend on who was faster, nor on how many there are: what is
    added up comes out the same.
    """
    left, lock = enumerate(tasks), Lock()
    done: dict[int, T] = {}

    def take() -> bool:
        with lock:
            place, task = next(left, (-1, 0))
        if place >= 0:
            done[place] = work(task)
        return place >= 0

    def help_out() -> None:
        with one_thread():
            while take():
                pass

    helping = [helpers.submit(help_out) for _ in range(count)]
    asked = 0
    try:
        while take():
            while asked in done:  # those before it may still be under way
                yield done.pop(asked)
                asked += 1
    finally:
        with lock:  # if this is left early, nobody takes another
            left = enumerate(())
        for future in helping:
            future.exception()  # waits
    for future in helping:
        future.result()  # raises
    while asked in done:
        yield done.pop(asked)
        asked += 1


def one_ahead(work: Callable[[int], T], tasks: Iterable[int]) -> Iterator[T]:
    """What comes of each task, in their order, one after the other; the next is under way while one is used."""
    with ThreadPoolExecutor(1) as pool:
        coming: deque[Future[T]] = deque()
        for task in tasks:
            coming.append(pool.submit(work, task))
            if len(coming) > 1:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
