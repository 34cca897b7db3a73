"""Ctrl-C between two steps, not in the middle of one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def graceful_interruption(
    asked: threading.Event | None = None, patience: float = 0.0
) -> Iterator[threading.Event]:
    """Catch the first Ctrl-C, SIGTERM or SIGHUP as a request; a second one interrupts at once as usual.

    SIGHUP is that of a terminal that was closed; under nohup it stays ignored.

    A checkpoint taken wherever the signal happens to land could hold half an update. Inside this context the
    loop looks after each step whether it has been asked to stop.

    asked:     an event that others may set as well, where no signal reaches this thread.
    patience:  seconds in which further signals are the first one again. A launcher of several processes passes on what
               a terminal has sent to all of them already.
    """
    asked = threading.Event() if asked is None else asked
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    previous: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    first: float | None = None

    def request(number: int, *_: object) -> None:
        nonlocal first
        moment = time.monotonic()
        if first is None:
            first = moment
            asked.set()
            if not patience:
                restore()
        elif moment - first >= patience:
            restore()
            signal.raise_signal(number)

    numbers = [signal.SIGINT, signal.SIGTERM]
    closed = getattr(signal, "SIGHUP", None)  # not on Windows
    if closed is not None and signal.getsignal(closed) != signal.SIG_IGN:
        numbers.append(closed)
    for number in numbers:
        previous[number] = signal.signal(number, request)
    try:
        yield asked
    finally:
        restore()
