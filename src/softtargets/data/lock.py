"""One process at a time, across processes: an operating-system lock on a small file.

The lock goes with the process, however it ends, so none is ever left behind; the file itself stays,
because removing it would let a waiting process and a new one each hold "the" lock.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from softtargets.data.files import writing
from softtargets.exceptions import StorageError


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock at `path`, waiting for whoever holds it now."""
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(descriptor, path)
        yield
    finally:
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int, path: Path) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
                return
            except OSError:
                time.sleep(0.2)

else:
    import fcntl

    def _acquire(descriptor: int, path: Path) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as problem:
            raise StorageError(
                f"the file system of {path.parent} cannot lock files ({problem.strerror}); fetch to a local "
                f"directory and move the result"
            ) from None
