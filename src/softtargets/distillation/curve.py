"""Accuracy over smoothness, several seeds a point: ready to be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from softtargets.arrays import over_seeds


@dataclass(frozen=True)
class Curve:
    """For each x, in rising order, how many values there are, and the lowest, mean and highest of them."""

    x: tuple[float, ...]
    counts: tuple[int, ...]
    lowest: tuple[float, ...]
    mean: tuple[float, ...]
    highest: tuple[float, ...]


def curve(points: Iterable[tuple[float, Iterable[float]]]) -> Curve:
    """One of the curves M1 to M4 from pairs of an x and its values, one per seed.

    M1 is the teacher and M2 the student alone, over alpha; M3 is the student of a hard teacher over temperature, M4
    that of a smoothed teacher over alpha; all four lie over the smoothness index in Müller et al. 2019, figure 5.
    Pairs may come in any order; values of equal x are taken together. For a dictionary pass its `items()`.

    >>> found = curve([(0.2, [0.9, 0.8]), (0.0, [0.7]), (0.2, [1.0])])
    >>> found.x, found.counts, found.lowest, found.highest
    ((0.0, 0.2), (1, 3), (0.7, 0.8), (0.7, 1.0))
    >>> [round(mean, 6) for mean in found.mean]
    [0.7, 0.9]
    """
    found: dict[float, list[float]] = {}
    for place, values in points:
        x, there = float(place), [float(value) for value in values]
        if not math.isfinite(x):
            raise ValueError(f"x of a point must be a finite number, not {x}")
        if not there:
            raise ValueError(f"the point at x = {x:g} has no values; leave it out, or pass one per seed")
        for value in there:
            if not math.isfinite(value):
                raise ValueError(f"values must be finite numbers, but one at x = {x:g} is {value}")
        found.setdefault(x, []).extend(there)
    if not found:
        raise ValueError("a curve needs at least one point")
    places = tuple(sorted(found))
    return Curve(places, *over_seeds([found[place] for place in places]))
