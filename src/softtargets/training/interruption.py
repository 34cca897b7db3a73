"""Ctrl-C between two steps, not in the middle of one."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
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

    for number in _numbers():
        previous[number] = signal.signal(number, request)
    try:
        yield asked
    finally:
        restore()


@contextmanager
def interrupted_once(patience: float) -> Iterator[Callable[[], None]]:
    """Ctrl-C, SIGTERM and SIGHUP interrupt once; for so many seconds more of them are nothing, also after this context.

    For processes that a launcher has started: it passes on what a terminal has sent to all, while they are ending.
    Yields what is to be called where the first one was taken in another way, such as by `graceful_interruption`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    first: float | None = None
    previous: dict[int, Any] = {}

    def taken() -> None:
        nonlocal first
        first = time.monotonic() if first is None else first

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def interrupt(number: int, *_: object) -> None:
        if first is None:
            taken()
            raise KeyboardInterrupt
        if time.monotonic() - first >= patience:
            restore()
            signal.raise_signal(number)

    for number in _numbers():
        previous[number] = signal.signal(number, interrupt)
    try:
        yield taken
    finally:
        if first is None:
            restore()


def _numbers() -> list[int]:
    closed = getattr(signal, "SIGHUP", None)  # not on Windows
    ignored = closed is None or signal.getsignal(closed) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored or closed is None else [closed])]
