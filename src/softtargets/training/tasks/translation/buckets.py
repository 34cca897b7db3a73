"""Which sentences share a batch: those of about the same length, so that little of it is padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.int64]
# So many shapes of a batch there are at most: on a GPU each is recorded for itself.
MOST = 8
# Lengths are filled up to a multiple of this: kernels read rows of even lengths faster.
EVEN = 4


@dataclass(frozen=True)
class Bucket:
    """Sentences of similar length: their numbers, rising, and the tokens that each side of them is filled up to."""

    members: Lengths
    source: int
    target: int

    def __len__(self) -> int:
        return len(self.members)

    def rows(self, tokens: int) -> int:
        """How many sentences a batch of so many tokens on either side holds; at least one, at most all."""
        return max(1, min(tokens // max(self.source, self.target), len(self)))


def into_buckets(source: Lengths, target: Lengths, most: int = MOST, even: int = EVEN) -> list[Bucket]:
    """Sort sentence pairs by their longer side into at most so many buckets, with as little padding as can be.

    A pair in a bucket takes the bucket's length on its longer side. The bounds that make the sum of these least are
    found exactly, by dynamic programming over the lengths that occur.

    >>> short, long = np.array([2, 3, 9]), np.array([4, 2, 11])
    >>> [(bucket.members.tolist(), bucket.source, bucket.target) for bucket in into_buckets(short, long, most=2)]
    [([0, 1], 4, 4), ([2], 12, 12)]
    """
    longer = _filled(np.maximum(source, target), even)
    lengths, counts = np.unique(longer, return_counts=True)
    buckets = []
    low = 0
    for high in _bounds(lengths, counts, most):
        members = np.flatnonzero((longer > low) & (longer <= high))
        filled = (int(_filled(side[members], even).max()) for side in (source, target))
        buckets.append(Bucket(members, *filled))
        low = high
    return buckets


def padding(buckets: Sequence[Bucket], target: Lengths) -> float:
    """The share of target positions that hold no token."""
    room = sum(len(bucket) * bucket.target for bucket in buckets)
    return 1 - int(target.sum()) / room if room else 0.0


def _filled(lengths: Lengths, even: int) -> Lengths:
    return -(-lengths // even) * even


def _bounds(lengths: Lengths, counts: Lengths, most: int) -> list[int]:
    """The upper ends of as many buckets as there may be: another one never takes more room."""
    there, buckets = len(lengths), min(most, len(lengths))
    sums = np.concatenate(([0], counts.cumsum()))
    # From length j to k in one bucket.
    room = (sums[None, 1:] - sums[:-1, None]) * lengths[None, :].astype(float)
    room[np.tril_indices(there, -1)] = np.inf
    best = room[0]  # the least room for all lengths up to k, in as many buckets as were looked at
    begins = []
    for _ in range(buckets - 1):
        total = np.concatenate(([np.inf], best[:-1]))[:, None] + room
        begins.append(total.argmin(0))
        best = total.min(0)
    ends = [there - 1]
    for begin in reversed(begins):
        ends.append(int(begin[ends[-1]]) - 1)
    return [int(lengths[end]) for end in reversed(ends)]
