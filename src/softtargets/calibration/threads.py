"""Threads of a CPU where they help, and none where they do not."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, wait
from contextlib import contextmanager
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


def ahead(work: Callable[[int], T], tasks: Iterable[int], pool: Executor, most: int) -> Iterator[T]:
    """What comes of each task, in their order; up to `most` others are under way while one is used.

    The order does not depend on who was faster, nor on how many there are: what is added up comes out the same. A task
    uses one thread.
    """

    def alone(task: int) -> T:
        with one_thread():
            return work(task)

    coming: deque[Future[T]] = deque()
    try:
        for task in tasks:
            coming.append(pool.submit(alone, task))
            if len(coming) > most:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:  # if this is left early, nobody begins another
        for future in coming:
            future.cancel()
        wait(coming)
