"""How long work reports itself: three calls that a terminal, a log or a test can listen to."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """A listener for work that is counted in bytes (downloads) or in images (decoding).

    `start` may come more than once for the same name: a download that lost its connection starts again
    with the bytes it already has, or with none where the server cannot continue.
    """

    def start(self, name: str, total: int | None, done: int) -> None:
        """Begin, or begin again, with `done` of `total` already there (`total` None: not known)."""

    def advance(self, n: int) -> None:
        """Count `n` more."""

    def finish(self) -> None:
        """End, for better or worse; called also where nothing could be started."""


class Silence:
    """The listener that does nothing, for when nobody is watching."""

    def start(self, name: str, total: int | None, done: int) -> None:
        """Ignore the start."""

    def advance(self, n: int) -> None:
        """Ignore the advance."""

    def finish(self) -> None:
        """Ignore the end."""


class Patient:
    """A line on standard error once something takes long, and then every so often; what is quick says nothing.

    >>> import sys
    >>> line = Patient(sys.stdout, first=0, then=0)
    >>> line.start("listing photographs", 20_000, 0); line.advance(5_000); line.finish()
    softtargets: listing photographs, 5,000 of 20,000
    softtargets: listing photographs, done
    """

    def __init__(self, stream: TextIO | None = None, first: float = 3.0, then: float = 10.0) -> None:
        self._stream, self._first, self._then = stream, first, then
        self._told = False

    def start(self, name: str, total: int | None, done: int) -> None:
        """Begin to count."""
        self._name, self._total, self._done, self._told = name, total, done, False
        self._due = time.monotonic() + self._first

    def advance(self, n: int) -> None:
        """Count, and say so if it is time."""
        self._done += n
        if time.monotonic() >= self._due:
            self._due, self._told = time.monotonic() + self._then, True
            self._say(f"{self._done:,}" + (f" of {self._total:,}" if self._total else ""))

    def finish(self) -> None:
        """End; said only if there was something to be heard before."""
        if self._told:
            self._say("done")
            self._told = False

    def _say(self, what: str) -> None:
        stream = self._stream or sys.stderr
        if stream is not None:
            stream.write(f"softtargets: {self._name}, {what}\n")
            stream.flush()
