"""A few measurements, one per seed, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from softtargets.claims.rule import Estimate, estimate, reach


@dataclass(frozen=True)
class Sample:
    """Values of one quantity, one per seed.

    examples: the variance of their mean that the choice of test examples adds (`examples_variance`); None where the
    predictions to compute it from are not there, and the test set is taken as it is.
    """

    values: tuple[float, ...]
    examples: float | None = None

    @classmethod
    def of(cls, values: Iterable[float], examples: float | None = None) -> Sample:
        """A sample from any iterable of numbers."""
        return cls(tuple(float(value) for value in values), examples)

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
        mean = self.mean  # found once, and not for every value
        if self.n < 2 or math.isnan(mean):
            return math.nan
        return math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / (self.n - 1))

    @property
    def estimate(self) -> Estimate:
        """What the verdict rule reckons with."""
        return estimate(self.values, self.examples or 0.0)

    def first(self, count: int) -> Sample:
        """The values of the first seeds.

        >>> Sample.of([1, 2, 3]).first(2).values
        (1.0, 2.0)
        """
        return Sample(self.values[:count], self.examples)

    def beyond(self, count: int) -> Sample:
        """The values of the seeds after these."""
        return Sample(self.values[count:], self.examples)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's t interval for the mean, with the chance of test examples if it is known; endless below two values.

        >>> low, high = Sample.of([1.0, 2.0, 3.0]).interval()
        >>> round(low, 3), round(high, 3)
        (-0.484, 4.484)
        """
        if self.n < 2:
            return -math.inf, math.inf
        if math.isnan(self.mean):
            return math.nan, math.nan
        # Where all seeds agree the sum above leaves no rounding behind, and neither may the interval.
        width = float(reach(self.estimate, (1 - confidence) / 2)) if self.spread or self.examples else 0.0
        return self.mean - width, self.mean + width

    def times(self, factor: float) -> Sample:
        """In another unit: shares as percentages.

        >>> Sample.of([0.25, 0.5], examples=0.01).times(100)
        Sample(values=(25.0, 50.0), examples=100.0)
        """
        return Sample.of(
            (factor * value for value in self.values),
            None if self.examples is None else factor**2 * self.examples,
        )

    def minus(self, other: Sample) -> Sample:
        """Differences seed by seed; both samples must list the same seeds in the same order."""
        if self.n != other.n:
            raise ValueError(f"cannot pair {self.n} values with {other.n}")
        return Sample(tuple(a - b for a, b in zip(self.values, other.values, strict=True)))
