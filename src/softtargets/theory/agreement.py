"""One number behind all three types: how often the test target agrees with the label that was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.theory.arguments import Array, Numbers, as_rates, as_result


def agreement(a: Any, b: Any, classes: Any, limits: bool = False) -> Numbers:
    r"""How often two noisy copies of a label agree, if one is right with probability a and the other with b.

    .. math:: w = ab + \frac{(1-a)(1-b)}{M-1}

    Both are right, or both are wrong in the same way. The formula is symmetric in a and b, and gives a for b = 1.

    >>> round(agreement(0.8, 0.8, classes=2), 12)
    0.68
    """
    a, b, classes = as_rates(limits, classes, a=a, b=b)
    return as_result(agreeing(a, b, classes)[0])


def agreeing(a: Array, b: Array, classes: Array) -> tuple[Array, Array]:
    """The agreement w and 1 - w, each without cancellation."""
    same = a * b + (1 - a) * (1 - b) / (classes - 1)
    other = a * (1 - b) + (1 - a) * (classes - 2 + b) / (classes - 1)
    return same, other


def cross_entropy(same: Array, other: Array, p: Array, classes: Array) -> Array:
    r"""A target that agrees with the label with probability `same`, and an output of p for the label:

    .. math:: -w \log p - (1-w) \log \frac{1-p}{M-1}
    """
    # 0 times the logarithm of 0 is 0: what never happens costs nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        right = np.where(same > 0, -same * np.log(p), 0.0)
        wrong = np.where(other > 0, -other * (np.log1p(-p) - np.log(classes - 1)), 0.0)
    return right + wrong
