"""Sums of Gaussian bells on a line, each point seeing only the bells that matter to it.

Bells and points are sorted, so that what matters to a point is a range of bells; ranges are worked on in blocks of
bounded size, in double precision. There are as many operations as pairs that matter, and never more than a block of
them in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

BLOCK = 1 << 16  # pairs at a time: half a MiB for each of a few temporaries, which stay in the cache


def blocks(low: Tensor, high: Tensor, size: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Points and bells of each block: bells `low` (included) to `high` (excluded) matter to a point.

    Every point is in one block, with at least all the bells that matter to it. A block has at most `size` pairs, or
    one point.

    >>> list(blocks(torch.tensor([0, 0, 2]), torch.tensor([2, 3, 4]), size=6))
    [(slice(0, 2, None), slice(0, 3, None)), (slice(2, 3, None), slice(2, 4, None))]
    """
    lows, highs = low.tolist(), high.tolist()
    start = 0
    while start < len(lows):
        left, right, stop = lows[start], highs[start], start + 1
        while stop < len(lows):
            wider = min(left, lows[stop]), max(right, highs[stop])
            if (wider[1] - wider[0]) * (stop + 1 - start) > size:
                break
            (left, right), stop = wider, stop + 1
        yield slice(start, stop), slice(left, right)
        start = stop


def nearest(points: Tensor, centres: Tensor) -> Tensor:
    """Which of the sorted centres is nearest to each point.

    >>> nearest(torch.tensor([-1.0, 0.4, 0.6, 9.0]), torch.tensor([0.0, 1.0]))
    tensor([0, 0, 1, 1])
    """
    place = torch.searchsorted(centres, points)
    before, after = (place - 1).clamp(min=0), place.clamp(max=len(centres) - 1)
    return torch.where((points - centres[before]).abs() <= (points - centres[after]).abs(), before, after)
