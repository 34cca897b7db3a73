"""A number and what it may be: an estimate with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

from softtargets.calibration.binning import normal_quantile

LEVEL = 0.95  # of all intervals of this room
QUANTILE = normal_quantile(LEVEL)


@dataclass(frozen=True)
class Estimate:
    """A value and its interval of 95 %.

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
        """It cannot be told from 0."""
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
        """A mean from the sum of values and of their squares; without end for a single value.

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
