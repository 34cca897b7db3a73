"""Checkpoints while the device goes on training."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import torch

from softtargets.runs import Checkpoint, RunWriter

Job = tuple[RunWriter, Checkpoint]


class Saver:
    """Writes checkpoints: on a GPU by a thread, so that neither the device nor the host waits for the disk.

    What is given to it must not change any more. An error is raised by the next call.
    """

    def __init__(self, device: torch.device, in_background: bool | None = None) -> None:
        on_gpu = device.type == "cuda"
        in_background = on_gpu if in_background is None else in_background
        self._thread = ThreadPoolExecutor(1, "checkpoints") if in_background else None
        self._stream = torch.cuda.Stream(device) if on_gpu else None
        self._pending: Future[None] | None = None

    def __enter__(self) -> Saver:
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._thread.shutdown()  # after what it is writing, whatever else went wrong

    @property
    def busy(self) -> bool:
        """Whether the last checkpoints are still being written."""
        return self._pending is not None and not self._pending.done()

    def save(self, jobs: Sequence[Job]) -> None:
        """Write these checkpoints, after those before."""
        self.wait()
        if self._thread is None:
            _write(jobs)
        else:
            if self._stream is not None:
                self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
            self._pending = self._thread.submit(self._write_later, jobs)

    def wait(self) -> None:
        """Until everything is on disk."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write_later(self, jobs: Sequence[Job]) -> None:
        with torch.cuda.stream(self._stream):  # nothing happens where there is none
            _write(jobs)


def _write(jobs: Sequence[Job]) -> None:
    for writer, checkpoint in jobs:
        writer.checkpoint(checkpoint)
