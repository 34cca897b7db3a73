"""Threads of a CPU where they help, and none where they do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

from softtargets.calibration.given import Given

T = TypeVar("T")


@contextmanager
def one_thread() -> Iterator[None]:
    """Operations inside use one thread: many small ones are slowed down by sharing each of them among several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # of operations started by this thread of Python; others have their own number
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_threads(work: Callable[[range], T], given: Given) -> list[T]:
    """Give each of torch's threads a part of the rows, and the results in the order of the parts.

    Pieces are small: every thread does whole pieces by itself. Nothing is added twice or in another order from run to
    run.
    """
    parts = given.parts(torch.get_num_threads() if given.scores.device.type == "cpu" else 1)

    def alone(part: range) -> T:
        with one_thread():
            return work(part)

    if len(parts) == 1:
        return [alone(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(alone, parts))
