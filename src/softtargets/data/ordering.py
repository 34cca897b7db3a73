"""Orders that are the same on every machine: by hash, never by a random number generator."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def dealt_out(labels: Sequence[int], salt: str) -> list[int]:
    """Order positions so that every stretch has all classes in proportion; within a class by hash.

    Recipes cut validation sets from the end of the training set and take the first so many of the rest; on
    files that lie class by class, or writer by writer, that would cut off whole classes or writers.

    >>> order = dealt_out([0, 0, 0, 0, 1, 1], "example")
    >>> [[0, 0, 0, 0, 1, 1][position] for position in order]
    [0, 1, 0, 0, 1, 0]
    """
    turn = {}
    for group in by_class(labels).values():
        for place, position in enumerate(sorted(group, key=lambda item: rank(item, salt))):
            turn[position] = (place + 0.5) / len(group)
    return sorted(turn, key=lambda position: (turn[position], position))


def by_class(labels: Sequence[int]) -> dict[int, list[int]]:
    """The positions of each class."""
    members: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    return members


def rank(position: int, salt: str) -> bytes:
    """A hash to sort by. Use another salt for every purpose, or the orders would be related."""
    return blake2b(f"{salt} {position}".encode(), digest_size=16).digest()
