"""The transition of the gamma type: below some clean rate nothing is worth learning, and from there p* jumps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from softtargets.theory.arguments import one_number_of_classes
from softtargets.theory.stationary import clean_rate_at, p_at, rising, upper_minimum


@dataclass(frozen=True)
class Transition:
    """Where the best p of the gamma type jumps, for one number of classes.

    `a` is the place: up to there p* is `low` = 1/M, beyond it starts at `high`. A minimum at p > 1/M exists
    from `appears` on, but is not the lowest before `a`; p = 1/M stays a minimum, no longer the lowest, until
    `vanishes`.
    """

    classes: float
    a: float
    low: float
    high: float
    appears: float
    vanishes: float

    @property
    def jump(self) -> float:
        """By how much p* jumps; 0 for two classes, where it only bends."""
        return self.high - self.low


def gamma_transition(classes: Any) -> Transition:
    r"""Locate the transition of Chen et al. 2020, section 4.3, to the last digits of double precision.

    With t and N as in `softtargets.theory.stationary`, every t > 0 has one a for which the loss is level there.
    The transition is the t on the rising branch at which the loss is as low as at p = 1/M:

    .. math:: \log(e^t + M - 1) - wt = \log M

    and `vanishes` is (M+1)/(2M), where the second derivative at p = 1/M, proportional to :math:`\frac12 -
    \frac{aM-1}{M-1}`, changes sign. For M = 2 all three fall on a = 3/4 and p* is continuous: the loss is even
    in t, so the transition is of second order there; from M = 3 on it is of first order (ERRATA.md, 8). As M
    grows, a log(M-1) tends to 1 and `high` to 0, both slowly: see `transition_asymptote`; ``classes=math.inf``
    gives the limits.

    >>> found = gamma_transition(10)
    >>> round(found.a, 6), round(found.low, 6), round(found.high, 6)
    (0.476818, 0.1, 0.482745)
    >>> gamma_transition(2)
    Transition(classes=2.0, a=0.75, low=0.5, high=0.5, appears=0.75, vanishes=0.75)
    """
    return _transition(float(one_number_of_classes(classes, infinite=True)))


def transition_asymptote(classes: Any) -> tuple[float, float]:
    r"""The place of the transition, and the p* beyond it, for very many classes; with :math:`L = \log(M-1)`

    .. math:: a \approx \frac1L \left(1 + \frac{1 + \log(L/2)}{L}\right), \quad p \approx \frac{2}{L}

    From the loss for small a and p, less log M: :math:`p + \frac{p^2}{2} - aLp + ap\log\frac1p`, which must be
    0 and level. Corrections are as slow as (log L / L)^2: with 1000 classes a is a hundredth off, p a tenth.

    >>> a, p = transition_asymptote(1000)
    >>> round(a, 3), round(gamma_transition(1000).a, 3)
    (0.192, 0.194)
    """
    size = float(one_number_of_classes(classes))
    if size < 3:
        raise ValueError(f"classes must be at least 3 here, not {size:g}: with two there is no jump")
    long = math.log(size - 1)
    return (1 + (1 + math.log(long / 2)) / long) / long, 2 / long


@lru_cache(maxsize=4096)
def _transition(classes: float) -> Transition:
    if classes == math.inf:
        return Transition(classes, a=0.0, low=0.0, high=0.0, appears=0.0, vanishes=0.5)
    vanishes = (classes + 1) / (2 * classes)
    if classes == 2:
        return Transition(classes, a=0.75, low=0.5, high=0.5, appears=0.75, vanishes=0.75)
    # N(t)/t is lowest where the slope of N is that of its chord, somewhere in the convex part.
    highest = float(upper_minimum(np.array(vanishes), np.array(classes)))
    lowest = _root(
        lambda t: _slope(t, classes) * t - rising(t, classes), 0.5 * math.log(classes - 1), highest
    )
    place = _root(lambda t: -_above(t, classes), lowest, highest)
    return Transition(
        classes,
        a=clean_rate_at(place, classes),
        low=1 / classes,
        high=float(p_at(np.array(place), np.array(classes))),
        appears=clean_rate_at(lowest, classes),
        vanishes=vanishes,
    )


def _slope(t: float, classes: float) -> float:
    return math.exp(t) + (classes - 1) * math.exp(-t)


def _above(t: float, classes: float) -> float:
    """The loss at t, less log M, for the a that makes it level there."""
    ratio = rising(t, classes) / t
    agreement = (1 + ratio / (1 + (classes - 1) * math.exp(-t))) / (classes + ratio)
    return math.log1p(math.expm1(t) / classes) - agreement * t


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is negative at `low` and positive at `high` changes sign, halving to the last bit."""
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        if function(middle) < 0:
            low = middle
        else:
            high = middle
