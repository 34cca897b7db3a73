"""The equations as the paper prints them, and their minima found by search alone.

Nothing here uses `softtargets.theory`: what its formulas say and what a search of the printed equations finds are
two computations that can disagree.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

# Candidates for p, evenly spread in log(p / (1 - p)), so that p near 0 and 1 are found as well; and how often the
# neighbourhood of the best one is cut to 0.62 of its length.
_CANDIDATES = np.linspace(-16, 16, 1601)
_CUTS = 60
_GOLDEN = (np.sqrt(5) - 1) / 2

# A minimum whose loss is this near the lowest is as low: but for rounding they are the same.
_AS_LOW = 1e-9


def printed_loss(p: Array, a: Array, classes: float, kind: str) -> Array:
    """Equations 11, 14 and 15 of Chen et al. 2020, which for two classes are 7, 8 and 9.

    >>> round(float(printed_loss(np.array(0.9), np.array(0.8), 10, "alpha")), 6)
    0.98425
    """
    others = classes - 1
    right, wrong = np.log(p), np.log((1 - p) / others)
    if kind == "alpha":
        return np.asarray(-a * right - (1 - a) * wrong)
    if kind == "beta":
        both = (1 - a) ** 2 / others
        return np.asarray(
            -(a**2) * right - 2 * a * (1 - a) * wrong - both * right - both * (classes - 2) * wrong
        )
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    confused = p * wrong + (1 - p) * (classes - 2) / others * wrong + (1 - p) / others * right
    return np.asarray(a * (entropy + (1 - p) * np.log(others)) - (1 - a) * confused)


def searched_p(a: Array, classes: float, kind: str) -> Array:
    """For each a the p in (0, 1) with the lowest printed loss; the largest where several are as low.

    >>> searched_p(np.array([0.6, 0.8]), 2, "beta").round(6)
    array([0.52, 0.68])
    """
    loss = _over_candidates(a, classes, kind)
    as_low = loss <= loss.min(-1, keepdims=True) + _AS_LOW
    place = np.clip(
        len(_CANDIDATES) - 1 - as_low[:, ::-1].argmax(-1), 1, len(_CANDIDATES) - 2
    )  # the last of them
    low, high = _CANDIDATES[place - 1], _CANDIDATES[place + 1]
    for _ in range(_CUTS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        falling = printed_loss(_p(left), a, classes, kind) > printed_loss(_p(right), a, classes, kind)
        low, high = np.where(falling, left, low), np.where(falling, high, right)
    return _p((low + high) / 2)


def lowest_minima(a: Array, classes: float, kind: str) -> NDArray[np.int64]:
    """For each a how many p have the lowest printed loss, apart from rounding.

    >>> lowest_minima(np.array([0.6, 0.9]), 2, "gamma")
    array([1, 2])
    """
    loss = _over_candidates(a, classes, kind)
    padded = np.pad(loss, ((0, 0), (1, 1)), constant_values=np.inf)
    dips = (loss <= padded[:, :-2]) & (loss < padded[:, 2:])
    return np.asarray((dips & (loss <= loss.min(-1, keepdims=True) + _AS_LOW)).sum(-1))


def _over_candidates(a: Array, classes: float, kind: str) -> Array:
    return printed_loss(_p(_CANDIDATES), a[:, None], classes, kind)


def _p(logit: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-logit)))
