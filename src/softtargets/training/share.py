"""The part of every batch that one process takes where several train one run together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Process `rank` of `ranks`, each of which takes a slice of every batch; one process alone takes all of it.

    Slices lie side by side in the order of the ranks, and their lengths differ by at most one.

    >>> [Share(rank, 4).rows(10) for rank in range(4)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None), slice(8, 10, None)]
    >>> Share().rows(10)
    slice(0, 10, None)
    """

    rank: int = 0
    ranks: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.ranks:
            raise ValueError(f"rank {self.rank} of {self.ranks} processes; ranks are counted from 0")

    def rows(self, count: int) -> slice:
        """The rows of a batch of `count` rows that this process takes."""
        each, rest = divmod(count, self.ranks)
        begin = self.rank * each + min(self.rank, rest)
        return slice(begin, begin + each + (self.rank < rest))
