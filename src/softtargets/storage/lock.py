"""One process at a time: an operating-system lock on a small file.

The lock goes with the process, however it ends, kill -9 included, so none is ever left behind.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from softtargets.exceptions import StorageError
from softtargets.storage.files import storage_errors

_POLL_SECONDS = 0.1


class Lock:
    """A held lock; `release` gives it back. Made by `acquire`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor >= 0:
            # Removed while still held: whoever has opened the old file notices, in `acquire`, that it is gone.
            # Ours only: the directory may have been moved away with our file, and another made in its place.
            if _same_file(self._path, self._descriptor):
                with suppress(OSError):
                    self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = -1


def acquire(path: Path) -> Lock | None:
    """Take the lock, or return None at once when another process has it."""
    while True:
        with storage_errors(path, "lock"):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _lock(descriptor, path):
                return None
            if _same_file(path, descriptor):
                held, descriptor = Lock(path, descriptor), -1
                return held
        finally:
            if descriptor >= 0:
                os.close(descriptor)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock at `path`, waiting for whoever holds it now."""
    while (lock := acquire(path)) is None:
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Whether some process holds the lock right now. Does not create the file."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _lock(descriptor, path)
    finally:
        os.close(descriptor)


def _same_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, path: Path) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(descriptor: int, path: Path) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as problem:
            raise StorageError(
                f"the file system of {path.parent} cannot lock files ({problem.strerror}); "
                "use a directory on a local disk"
            ) from None
        return True
