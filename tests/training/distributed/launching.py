"""Several processes that train together, as torchrun would start them, but forked from one that has torch loaded."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import time
from pathlib import Path

from forking import finish, start


def free_port():
    """One below those that the system hands out, so that nothing takes it between this look and the ranks' own."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def launch(ranks, work, *arguments, folder=None, environment=None, daemon=True):
    """Start `work(*arguments)` as rank 0, 1, ... of so many; what each prints goes to `folder`/RANK.txt.

    Not as a `daemon` it may start processes of its own, as compiling for a GPU does.
    """
    port, given = free_port(), environment or {}
    return [
        start(as_rank, rank, ranks, port, folder, given, work, arguments, daemon=daemon)
        for rank in range(ranks)
    ]


def together(ranks, work, *arguments, **options):
    """The same, to its end: the exit codes."""
    return [finish(child) for child in launch(ranks, work, *arguments, **options)]


def as_rank(rank, ranks, port, folder, given, work, arguments):
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {key: value for key, value in given.items() if not key.startswith("rank ")}
    os.environ |= given.get(f"rank {rank}", {})
    for name in [name for name, value in os.environ.items() if value == "absent"]:
        del os.environ[name]
    if folder is not None:
        written = open(Path(folder) / f"{rank}.txt", "w", buffering=1)  # noqa: SIM115 - until the process ends
        with contextlib.ExitStack() as streams:
            streams.enter_context(contextlib.redirect_stdout(written))
            streams.enter_context(contextlib.redirect_stderr(written))
            work(*arguments)
        return
    work(*arguments)


def said(folder, rank):
    return (Path(folder) / f"{rank}.txt").read_text()


def commanded(*words):
    """A command line, as a process of its own would run it."""
    from softtargets.cli import main

    main([str(word) for word in words])


def waiting_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.005)
