"""What a stream of small batches needs again and again, and takes long to make: memory for pieces, and threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

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
