"""Which part of a picture is cut out, where the picture is decoded and its size is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Box = tuple[int, int, int, int]  # top, left, rows, columns


class Tries(NamedTuple):
    """What was drawn for a part of a picture of any size.

    each:   the share of the picture's area, the ratio of width to height, and two words of 32 bits for its place.
    ratio:  the ends of what is allowed, for the last resort.
    """

    each: Sequence[tuple[float, float, int, int]]
    ratio: tuple[float, float]


def box(tries: Tries, height: int, width: int) -> Box:
    """The first try that lies inside a picture, else the largest part about its centre that is allowed.

    The same as `ResizedCrop.draw` finds for many pictures at a time, number by number.

    >>> box(Tries([(0.25, 1.0, 0, 1 << 31)], (0.75, 4 / 3)), 40, 40)
    (0, 10, 20, 20)
    """
    area = height * width
    for share, ratio, down, right in tries.each:
        columns, rows = round(math.sqrt(area * share * ratio)), round(math.sqrt(area * share / ratio))
        if 0 < columns <= width and 0 < rows <= height:
            return down * (height - rows + 1) >> 32, right * (width - columns + 1) >> 32, rows, columns
    low, high = tries.ratio
    rows = min(height, max(1, round(width / low)))
    columns = min(width, max(1, round(height * high)))
    return (height - rows) // 2, (width - columns) // 2, rows, columns
