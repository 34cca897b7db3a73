"""The numbers of a risk-coverage picture: error rates and their intervals at some coverages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softtargets.selection.curve import Numbers, RiskCoverage
from softtargets.selection.intervals import accuracy_intervals

STEPS = 200
FIRST = (
    20  # examples that a curve begins with: the risk of fewer is more scatter than anyone would want to see
)


@dataclass(frozen=True, eq=False)
class RiskPoints:
    """The error rate of the most confident share of predictions, for each coverage, with its interval."""

    coverages: Numbers
    risk: Numbers
    low: Numbers
    high: Numbers


def shown_coverages(curves: Sequence[RiskCoverage]) -> Numbers:
    """Coverages from the first that has some examples of the largest set to 1, in steps of half a percent.

    >>> from softtargets.selection import risk_coverage
    >>> shown_coverages([risk_coverage([0.9, 0.8], [1, 0])])[[0, -1]].tolist()
    [1.0, 1.0]
    """
    most = max(curve.examples for curve in curves)
    coverages = np.arange(1, STEPS + 1) / STEPS
    return coverages[coverages * most >= min(FIRST, most)]


def risk_points(curve: RiskCoverage, coverages: Numbers | None = None, level: float = 0.95) -> RiskPoints:
    """Error rates at these coverages, by default `shown_coverages`; intervals as in `accuracy_intervals`."""
    at = shown_coverages([curve]) if coverages is None else np.asarray(coverages, dtype=np.float64)
    low, high = accuracy_intervals(curve, at, level)
    return RiskPoints(at, curve.errors_at(at) / (at * curve.examples), 1 - high, 1 - low)


def least_risk(curve: RiskCoverage, coverages: Numbers) -> Numbers:
    """The error rates if every mistake were less confident than everything right."""
    least: Numbers = np.maximum(coverages - curve.accuracy, 0) / coverages
    return least
