"""Ends a Ray that was started on this machine when whoever started it is gone, also by kill -9.

Ray ends most of its processes with the program that started it; some agents stay for a minute. This program is started
beside it with a pipe as its standard input, imports nothing but the standard library, and waits for the pipe to close.
Then it kills the processes that have files of that Ray open, and removes its directory.
"""

import contextlib
import os
import shutil
import signal
import sys
import time

_ROUNDS, _SECONDS = 50, 0.1


def processes_of(directory: str, spared: int) -> list[int]:
    """Processes of this user that have files open in a directory, but one; only Linux can tell."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self/fd") else []:
        if name.isdigit() and int(name) not in (os.getpid(), spared):
            try:
                links = [os.readlink(f"/proc/{name}/fd/{fd}") for fd in os.listdir(f"/proc/{name}/fd")]
            except OSError:  # of another user, or gone
                continue
            if any(link.startswith(directory + os.sep) for link in links):
                found.append(int(name))
    return found


def bury(directory: str, spared: int) -> None:
    """Kill what is left of a Ray but the program that started it, and remove its directory."""
    for _ in range(_ROUNDS):
        there = processes_of(directory, spared)
        for process in there:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        if not there:
            break
        time.sleep(_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it goes last
    sys.stdin.buffer.read()
    bury(sys.argv[1], int(sys.argv[2]))
