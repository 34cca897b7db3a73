"""One writer per run: an advisory lock that the kernel releases even after kill -9."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from softtargets.runs.files import storage_errors


class Lock:
    """A held lock file; `release` gives it back. Make one with `acquire`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor >= 0:
            # Removed while still held: whoever opened the old file notices, in `acquire`, that it is gone.
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1


def acquire(path: Path) -> Lock | None:
    """Take the lock, or return None at once when another process has it."""
    while True:
        with storage_errors(path, "lock"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _same_file(path, descriptor):
            return Lock(path, descriptor)
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock right now. Does not create the file."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
