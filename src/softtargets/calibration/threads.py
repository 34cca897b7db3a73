"""Parts of the rows in parallel, on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from softtargets.calibration.given import Given

T = TypeVar("T")


def in_threads(work: Callable[[range], T], given: Given) -> list[T]:
    """Give each of torch's threads a part of the rows, and the results in the order of the parts.

    Pieces are small, and to share each of twenty operations on them among threads costs more than it saves: every
    thread does whole pieces by itself instead. Nothing is added twice or in another order from run to run.
    """
    threads = torch.get_num_threads() if given.scores.device.type == "cpu" else 1
    parts = given.parts(threads)
    if len(parts) == 1:
        return [work(parts[0])]

    def alone(part: range) -> T:
        torch.set_num_threads(1)  # of operations started here; others have their own number
        try:
            return work(part)
        finally:
            torch.set_num_threads(threads)

    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(alone, parts))
