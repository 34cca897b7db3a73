"""Values of several seeds at the same places."""

from __future__ import annotations

import math
from collections.abc import Sequence

Numbers = tuple[float, ...]


def over_seeds(groups: Sequence[Sequence[float]]) -> tuple[tuple[int, ...], Numbers, Numbers, Numbers]:
    """For the values at each place how many there are, and the lowest, mean and highest of them.

    >>> over_seeds([[0.5], [1.0, 2.0]])
    ((1, 2), (0.5, 1.0), (0.5, 1.5), (0.5, 2.0))
    """
    means = tuple(math.fsum(group) / len(group) for group in groups)
    return tuple(map(len, groups)), tuple(map(min, groups)), means, tuple(map(max, groups))
