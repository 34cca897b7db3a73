"""What a stream of small batches needs again and again, and takes long to make: memory for pieces, and threads.

Threads of a CPU help with many pieces; with small operations they only get into each other's way.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor


class _Helpers(NamedTuple):
    pool: ThreadPoolExecutor
    threads: int
    process: int  # threads do not follow into a process that is forked


class Workspace:
    """Buffers and threads of one stream, made when first needed; copies of a workspace begin empty."""

    def __init__(self) -> None:
        self._idle: list[Tensor] = []
        self._helpers: _Helpers | None = None

    @contextmanager
    def lend(self, piece: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Two buffers of the shape of a piece, with anything in them; each thread gets its own."""
        wanted = 2 * piece.numel()
        try:
            buffer = self._idle.pop()
        except IndexError:
            buffer = _new(piece, wanted)
        if (buffer.dtype, buffer.device) != (piece.dtype, piece.device) or len(buffer) < wanted:
            buffer = _new(piece, wanted)
        first, second = buffer[:wanted].view(2, *piece.shape)
        try:
            yield first, second
        finally:
            if piece.device.type == "cpu":  # elsewhere torch keeps what is freed
                self._idle.append(buffer)

    def helpers(self, count: int) -> ThreadPoolExecutor:
        """At least so many threads, started when there is work for them, ended with the workspace."""
        wanted = max(1, count)
        if self._helpers is None or self._helpers.process != os.getpid() or self._helpers.threads < wanted:
            self._helpers = _Helpers(ThreadPoolExecutor(wanted), wanted, os.getpid())
        return self._helpers.pool

    def __reduce__(self) -> tuple[type[Workspace], tuple[()]]:
        return Workspace, ()


def _new(like: Tensor, numbers: int) -> Tensor:
    # A buffer made in inference mode could not be written to outside of it, nor by threads, which do not inherit it.
    with torch.inference_mode(False):
        return like.new_empty(numbers)


T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[int]:
    """Use one thread for operations in the block; returns the number of threads outside.

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
