"""Ctrl-C between two steps, not in the middle of one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def graceful_interruption(patience: float = 0.0) -> Iterator[threading.Event]:
    """Catch the first Ctrl-C, SIGTERM or SIGHUP as a request; a second one interrupts at once as usual.

    SIGHUP is that of a terminal that was closed; under nohup it stays ignored.

    A checkpoint taken wherever the signal happens to land could hold half an update. Inside this context the
    loop looks after each step whether it has been asked to stop.

    patience:  seconds in which further signals are the first one again. A launcher of several processes passes on what
               a terminal has sent to all of them already.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    previous: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    first = 0.0

    def request(number: int, *_: object) -> None:
        nonlocal first
        moment = time.monotonic()
        if asked.is_set() and moment - first < patience:
            return
        again = asked.is_set()
        first = moment
        asked.set()
        if again or not patience:
            restore()
        if again:
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
