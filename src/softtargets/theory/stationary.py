r"""Where the loss of the gamma type has slope 0, in a variable that makes it easy.

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

import numpy as np

from softtargets.theory.arguments import Array

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
