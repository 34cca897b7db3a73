"""What distillation adds: a student's accuracy against that of the same model without a teacher."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Gain:
    """Differences of accuracy, one per seed, and what follows from them.

    `deviation` has n - 1 in the denominator; `interval` is Student's t interval of 95 % for the mean. From a single
    seed the one is NaN and the other infinitely wide.
    """

    differences: tuple[float, ...]
    mean: float
    deviation: float
    lowest: float
    highest: float
    interval: tuple[float, float]


def gain(student: Iterable[float], baseline: Iterable[float]) -> Gain:
    r"""Student minus baseline, seed by seed; both must list the same seeds in the same order.

    .. math:: \bar d \pm t_{0.975,\, n-1}\, \frac{s}{\sqrt n}, \quad d_i = a_i - b_i

    "Knowledge distillation is only useful if it provides an additional gain to the student compared to training the
    student with label smoothing" (Müller et al. 2019, section 4): the baseline to take is the best of those.

    >>> found = gain(student=[0.93, 0.95, 0.97], baseline=[0.92, 0.93, 0.94])
    >>> round(found.mean, 6), round(found.deviation, 6), [round(end, 4) for end in found.interval]
    (0.02, 0.01, [-0.0048, 0.0448])
    """
    first, second = _numbers(student, "student"), _numbers(baseline, "baseline")
    if len(first) != len(second):
        raise ValueError(
            f"student and baseline must have the same seeds, but there are {len(first)} and {len(second)} values"
        )
    differences = tuple(a - b for a, b in zip(first, second, strict=True))
    n = len(differences)
    mean = math.fsum(differences) / n
    deviation = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (n - 1)) if n > 1 else math.nan
    return Gain(
        differences=differences,
        mean=mean,
        deviation=deviation,
        lowest=min(differences),
        highest=max(differences),
        interval=_interval(mean, deviation, n),
    )


def _interval(mean: float, deviation: float, n: int) -> tuple[float, float]:
    if n < 2:
        return -math.inf, math.inf
    from scipy.stats import t

    reach = float(t.ppf(0.975, n - 1)) * deviation / math.sqrt(n)
    return mean - reach, mean + reach


def _numbers(values: Iterable[float], name: str) -> tuple[float, ...]:
    found = tuple(float(value) for value in values)
    if not found:
        raise ValueError(f"{name} must have the accuracy of at least one seed")
    for place, value in enumerate(found):
        if not math.isfinite(value):
            raise ValueError(f"accuracies must be finite numbers, but value {place} of {name} is {value}")
    return found
