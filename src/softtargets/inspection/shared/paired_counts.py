"""Two predictions of the same examples, from how often only one of them is right.

What compare says of two models, and calibrate of the classes of one model before and after a correction.
"""

from __future__ import annotations

import math

from softtargets.inspection.shared.numbers import QUANTILE, Estimate


def accuracy_difference(only_a: int, only_b: int, examples: int) -> Estimate:
    """The accuracy of B less that of A: from the examples that only one of them gets right.

    The interval is the adjusted one of Bonett & Price 2012, which adds one example to each.

    >>> found = accuracy_difference(10, 30, 1000)
    >>> found.value, round(found.low, 4), round(found.high, 4)
    (0.02, 0.0073, 0.0326)
    """
    n = examples + 2
    a, b = (only_a + 1) / n, (only_b + 1) / n
    half = QUANTILE * math.sqrt(max(a + b - (b - a) ** 2, 0.0) / n)
    return Estimate((only_b - only_a) / examples, max(b - a - half, -1.0), min(b - a + half, 1.0))


def mcnemar(only_a: int, only_b: int) -> float:
    """The mid-p value of McNemar's test that both are right equally often (Fagerland et al. 2013).

    >>> round(mcnemar(1, 5), 4)
    0.125
    """
    from scipy.stats import binom

    n, fewer = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return 1.0
    return float(min(1.0, 2 * binom.cdf(fewer, n, 0.5) - binom.pmf(fewer, n, 0.5)))
