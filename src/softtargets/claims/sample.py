"""A handful of measurements, one per seed, and what can be said from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """Values of one quantity, one per seed."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Iterable[float]) -> Sample:
        """A sample from any iterable of numbers."""
        return cls(tuple(float(value) for value in values))

    @property
    def n(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The arithmetic mean; NaN for an empty sample, or one with values that are not finite."""
        if not self.values or not all(map(math.isfinite, self.values)):
            return math.nan
        return math.fsum(self.values) / self.n

    @property
    def spread(self) -> float:
        """The standard deviation over seeds (n - 1 in the denominator); NaN below two values."""
        if self.n < 2 or math.isnan(self.mean):
            return math.nan
        return math.sqrt(math.fsum((value - self.mean) ** 2 for value in self.values) / (self.n - 1))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's t interval for the mean; infinitely wide below two values.

        >>> low, high = Sample.of([1.0, 2.0, 3.0]).interval()
        >>> round(low, 3), round(high, 3)
        (-0.484, 4.484)
        """
        if self.n < 2:
            return -math.inf, math.inf
        from scipy.stats import t

        reach = float(t.ppf((1 + confidence) / 2, self.n - 1)) * self.spread / math.sqrt(self.n)
        return self.mean - reach, self.mean + reach

    def minus(self, other: Sample) -> Sample:
        """Differences seed by seed; both samples must list the same seeds in the same order."""
        if self.n != other.n:
            raise ValueError(f"cannot pair {self.n} values with {other.n}")
        return Sample(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))
