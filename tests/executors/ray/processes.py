"""Processes of this machine, and programs that train on a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def of_directory(directory: Path) -> list[int]:
    """Ids of the processes of a Ray whose files are in a directory, workers included."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            said = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
            ended = (path / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if str(directory).encode() in said and not ended and int(path.name) != os.getpid():
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
