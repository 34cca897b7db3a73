"""Saying how far a long reading is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from torch import Tensor

Told = Callable[[str, int, int], None]  # what is being done, examples so far, examples in all
Piece = tuple[Tensor, Tensor]  # what is known of some examples, and their labels


def quiet(what: str, done: int, total: int) -> None:
    """Say nothing."""


def telling(pieces: Iterable[Piece], what: str, told: Told, total: int, done: int = 0) -> Iterator[Piece]:
    """The same pieces, saying after each how many examples are through; `done` were before."""
    for values, labels in pieces:
        yield values, labels
        done += len(labels)
        told(what, done, total)
