r"""The transition of the gamma type: below some clean rate nothing is worth learning, and from there p* jumps.

It is found where the loss has slope 0, in a variable that makes it easy.

Let :math:`t = \log \frac{p}{q}`, q = (1-p)/(M-1): by how much the logit of the label is above the others. Then
the loss is :math:`\log(e^t + M - 1) - wt`, and with :math:`R = \frac{aM-1}{1-a}` its slope in t has the sign of

.. math:: N(t) - Rt, \quad N(t) = e^t + M - 2 - (M-1)e^{-t} = (1 - e^{-t})(e^t + M - 1).

So t = 0, that is p = 1/M, is always level, for any a. Others obey N(t)/t = R: for every t there is exactly one
a. N is concave below :math:`t = \frac12 \log(M-1)` and convex above, with N(0) = 0: N(t)/t falls from M at t =
0 to its lowest and then rises. Hence a minimum at p > 1/M exists above a certain a, there is only one, and it
is on the rising branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from softtargets.theory.arguments import Array, one_number_of_classes

_MOST_STEPS = 200
_SERIES_BELOW = 0.3
_FACTORIALS = [math.factorial(k) for k in range(2, 16)]


def p_at(t: Array, classes: Array) -> Array:
    """The mass on the label whose logit is t above the others."""
    return 1 / (1 + (classes - 1) * np.exp(-t))


def rising(t: float, classes: float) -> float:
    """N(t)."""
    return math.expm1(t) - (classes - 1) * math.expm1(-t)


def clean_rate_at(t: float, classes: float) -> float:
    """The a for which the loss is level at t, which is not 0."""
    ratio = rising(t, classes) / t
    return (1 + ratio) / (classes + ratio)


def upper_minimum(a: Array, classes: Array) -> Array:
    """The t > 0 of the minimum on the rising branch; there must be one.

    Newton's method for the convex N(t) - Rt from above, where it cannot overshoot.
    """
    ratio = (a * classes - 1) / (1 - a)
    beyond = (2 * a * classes - classes - 1) / (1 - a)  # R - M, which near 0 would be lost in R
    # From N(t) >= e^t - 1: at the minimum e^t - 1 <= Rt, and so t <= 2 log(R + 2), which narrows itself.
    t = 2 * np.log(ratio + 2)
    for _ in range(3):
        t = np.log1p(ratio * t)
    for _ in range(_MOST_STEPS):
        height = _excess(t) - (classes - 1) * _excess(-t) - beyond * t
        step = height / (np.exp(t) + (classes - 1) * np.exp(-t) - ratio)
        # Where nothing but rounding is left of the height, its sign says nothing.
        step = np.where(np.isfinite(step), np.clip(step, 0, t / 2), 0)
        t = t - step
        if (step <= 4 * np.finfo(np.float64).eps * t).all():
            break
    return t


def _excess(t: Array) -> Array:
    """exp(t) - 1 - t, also where t is small."""
    small = np.clip(t, -_SERIES_BELOW, _SERIES_BELOW)
    series = np.zeros_like(t)
    for factorial in reversed(_FACTORIALS):
        series = series * small + 1 / factorial
    return np.where(np.abs(t) < _SERIES_BELOW, series * small * small, np.expm1(t) - t)


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

    With t and N as in `softtargets.theory.transition`, every t > 0 has one a for which the loss is level there.
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

    From the loss for small a and p, less log M: :math:`p + \frac{p^2}{2} - aLp + ap\log\frac1p`, which must be 0
    and level. Corrections vanish only as (log L / L)^2: with 1000 classes a is off by about 0.01 and p by about
    0.1.

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
