"""Processes of this machine, and programs that train on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def of_directory(prefix: str) -> list[int]:
    """Ids of the processes of a Ray whose files are in directories of this prefix: they have their logs open there."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            links = [os.readlink(link) for link in (path / "fd").iterdir()]
        except OSError:
            continue
        if any(link.startswith(prefix) for link in links) and int(path.name) != os.getpid():
            found.append(int(path.name))
    return found


def softtargets(*words: object, **how: object) -> subprocess.Popen[str]:
    """A command, in a session of its own as a terminal would give it."""
    command = [sys.executable, "-m", "softtargets", *map(str, words)]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **how}
    return subprocess.Popen(command, start_new_session=True, **how)  # type: ignore[call-overload]


def wait_for(condition, seconds: float = 90.0, what: str = "it did not happen"):
    """What a condition gives, as soon as it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, what
        time.sleep(0.02)
    return found
