"""How long work reports itself: three calls that a terminal, a log or a test can listen to."""

from __future__ import annotations

from typing import Protocol


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
