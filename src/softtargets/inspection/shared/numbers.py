"""Numbers: an estimate with its interval, and how a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.calibration import normal_quantile
from softtargets.report import number, percent
from softtargets.report import plural as count

__all__ = [
    "LEVEL",
    "QUANTILE",
    "Estimate",
    "between",
    "count",
    "estimated",
    "listed",
    "number",
    "percent",
    "points",
]

LEVEL = 0.95  # of all intervals of this room
QUANTILE = normal_quantile(LEVEL)


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval.

    >>> Estimate(0.3, 0.1, 0.5).above_zero, Estimate(0.3, -0.1, 0.5).above_zero
    (True, False)
    """

    value: float
    low: float
    high: float

    @property
    def above_zero(self) -> bool:
        """The whole interval is above 0."""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """The whole interval is below 0."""
        return self.high < 0

    @property
    def is_zero(self) -> bool:
        """The value is indistinguishable from 0: the interval holds it."""
        return not (self.above_zero or self.below_zero)

    def __neg__(self) -> Estimate:
        return Estimate(-self.value, -self.high, -self.low)

    def cells(self, name: str) -> dict[str, float]:
        """Three columns of a table.

        >>> Estimate(0.3, 0.1, 0.5).cells("gain")
        {'gain': 0.3, 'gain_low': 0.1, 'gain_high': 0.5}
        """
        return {name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}

    @classmethod
    def of_mean(cls, total: float, squares: float, count: int) -> Estimate:
        """A mean from the sum of values and of their squares; of a single value the interval is infinite.

        >>> found = Estimate.of_mean(total=0.0, squares=100.0, count=100)
        >>> found.value, round(found.high, 3)
        (0.0, 0.197)
        """
        mean = total / count
        if count < 2:
            return cls(mean, -math.inf, math.inf)
        variance = max(squares / count - mean * mean, 0.0) / (count - 1)
        half = QUANTILE * math.sqrt(variance)
        return cls(mean, mean - half, mean + half)


def significant(value: float, digits: int = 2) -> str:
    """A small number with so many digits that mean something.

    >>> significant(0.000181), significant(0.0049), significant(3.2e-7), significant(1e-46)
    ('0.00018', '0.0049', '3.2e-07', '1e-46')
    """
    return f"{float(f'{value:.{digits - 1}e}'):.{digits}g}"


def between(low: float, high: float, digits: int = 1, *, share: bool = True, sign: bool = False) -> str:
    """The ends of an interval.

    >>> between(0.02, 0.041), between(1.2, 1.4, 2, share=False)
    ('2.0 to 4.1 %', '1.20 to 1.40')
    """
    if math.isnan(low) or math.isnan(high):
        return "–"
    if share:
        return f"{number(100 * low, digits, sign)} to {percent(high, digits, sign)}"
    return f"{number(low, digits, sign)} to {number(high, digits, sign)}"


def estimated(found: Estimate, digits: int = 1, *, share: bool = True, sign: bool = False) -> str:
    """A value and its interval in brackets.

    >>> estimated(Estimate(0.03, 0.02, 0.04))
    '3.0 % (2.0 to 4.0 %)'
    """
    value = percent(found.value, digits, sign) if share else number(found.value, digits, sign)
    return f"{value} ({between(found.low, found.high, digits, share=share, sign=sign)})"


def points(found: Estimate, digits: int = 2) -> str:
    """A difference of shares and its interval, in points.

    >>> points(Estimate(0.03, -0.02, 0.04), 1)
    '+3.0 points (−2.0 to +4.0)'
    """
    value, low, high = (number(100 * one, digits, sign=True) for one in (found.value, found.low, found.high))
    return f"{value} points ({low} to {high})"


def listed(words: Sequence[str]) -> str:
    """``a, b and c``.

    >>> listed(["a"]), listed(("a", "b", "c"))
    ('a', 'a, b and c')
    """
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
