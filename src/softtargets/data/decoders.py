"""Those who decode image files: threads of this process, or processes that threads of this one ask.

Pillow lets go of the interpreter's lock while it decodes, so that a few threads do what processes do, and nobody has to
start them. Many threads only wait for each other: on 16 cores they decoded a seventh of what processes did
(docs/images.md). Both put pixels where they are told to, in memory that processes can share, and neither changes a
single one.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from itertools import count

from softtargets.data.boxes import Tries
from softtargets.data.decoder import fill
from softtargets.data.decoding import Decoding, Size
from softtargets.exceptions import DataError

NUMBER, KIND = "SOFTTARGETS_DECODERS", "SOFTTARGETS_DECODE_IN"
KINDS = ("threads", "processes")
# More threads than these wait for each other: for the interpreter's lock, and for the memory that all of them map.
FEW_THREADS = 4
# Pictures that are decoded by one and the same: enough that asking costs nothing, few enough that all have work.
BLOCK = 8
# Processes of this machine that share its cores where one run is trained by several (as torchrun says).
_LOCAL_RANKS = "LOCAL_WORLD_SIZE"

_numbers = count()


class Memory:
    """Bytes that other processes can write to; they are gone with the last process that knows them, however it ends."""

    def __init__(self, size: int) -> None:
        self.number = next(_numbers)
        self.path: str | None = None
        if not hasattr(os, "memfd_create"):  # beyond Linux threads do the work
            self.bytes = mmap.mmap(-1, max(size, 1))
            return
        file = os.memfd_create("softtargets")
        weakref.finalize(self, os.close, file)
        os.ftruncate(file, max(size, 1))
        self.bytes = mmap.mmap(file, max(size, 1))
        self.path = f"/proc/{os.getpid()}/fd/{file}"


class Decoders:
    """So many `threads`, which decode themselves or have a process each that does."""

    def __init__(self, number: int, kind: str = "threads") -> None:
        self.number = number
        self.kind = kind if hasattr(os, "memfd_create") else "threads"
        self._pool = ThreadPoolExecutor(number, "decoder")
        self._own = threading.local()

    def __str__(self) -> str:
        return f"{self.number} {self.kind}"

    def decode(
        self,
        paths: Sequence[str],
        how: Decoding,
        memory: Memory,
        offset: int,
        tries: Sequence[Tries] | None = None,
    ) -> list[Future[list[Size]]]:
        """Have files decoded into some memory, one after another from a place on; each result is some of the sizes.

        `tries` say for each file which part is cut out, where that is wanted (`how.cut`).
        """
        return [
            self._pool.submit(
                self._block,
                paths[begin : begin + BLOCK],
                how,
                memory,
                offset + begin * how.bytes,
                (tries or ())[begin : begin + BLOCK],
            )
            for begin in range(0, len(paths), BLOCK)
        ]

    def _block(
        self, paths: Sequence[str], how: Decoding, memory: Memory, offset: int, tries: Sequence[Tries]
    ) -> list[Size]:
        if self.kind == "threads" or memory.path is None:
            return fill(memory.bytes, offset, paths, how, tries)
        question = {"memory": [memory.number, memory.path], "offset": offset}
        question |= {"paths": list(paths), "how": asdict(how), "tries": list(tries)}
        for _ in range(2):  # one that was killed is replaced, once
            process: _Process | None = getattr(self._own, "process", None)
            if process is None:
                process = self._own.process = _Process()
            if (said := process.ask(question)) is not None:
                if "problem" in said:
                    raise DataError(str(said["problem"]))
                return [(height, width) for height, width in said["sizes"]]
            status = process.ended()
            self._own.process = None
        raise DataError(
            f"a process that decodes images died twice ({status}) with one of these files: {', '.join(paths)}. Is "
            f"there enough memory? {KIND}=threads decodes without processes, and {NUMBER} sets the number of "
            "processes"
        )


class _Process:
    """One that does what `decoder.py` says."""

    def __init__(self) -> None:
        known = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from softtargets.data.decoder import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": known, "OMP_NUM_THREADS": "1"},
        )
        weakref.finalize(self, _end, self._process)

    def ask(self, question: dict[str, object]) -> dict[str, list[Size]] | None:
        """What it answers; None if it is dead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{json.dumps(question)}\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            return None
        said: dict[str, list[Size]] | None = json.loads(line) if line.endswith("\n") else None
        return said

    def ended(self) -> str:
        """How it died, in words."""
        status = self._process.wait()
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"


def _end(process: subprocess.Popen[str]) -> None:
    """It ends by itself once nobody can ask; that is what closing says."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def decoders() -> Decoders:
    """Those of this process, as many and of the kind that the environment says."""
    number = _number()
    return _decoders(os.getpid(), number, _kind(number))


@lru_cache(maxsize=1)
def _decoders(process: int, number: int, kind: str) -> Decoders:
    return Decoders(number, kind)


def _number() -> int:
    said = os.environ.get(NUMBER, "")
    if not said:
        here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        ranks = os.environ.get(_LOCAL_RANKS, "1")
        return max(1, here // (int(ranks) if ranks.isdigit() and int(ranks) else 1))
    if not said.isdigit() or not 1 <= int(said) <= 1024:
        raise DataError(
            f"{NUMBER} is {said!r}; it must be the number of {' or '.join(KINDS)} that decode images, from 1 to 1024"
        )
    return int(said)


def _kind(number: int) -> str:
    said = os.environ.get(KIND, "") or KINDS[number > FEW_THREADS]
    if said not in KINDS:
        raise DataError(f"{KIND} is {said!r}; it must be one of {', '.join(KINDS)}")
    return said
