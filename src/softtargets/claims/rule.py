r"""The verdict rule as arithmetic on arrays: estimates in, p-values and verdicts out.

Everything works on arrays whose last axis are the claims of a page, so that a simulation puts thousands of pages
through the very code that judges one.

That a mean over S seeds lies above an end is shown at a level :math:`p`, one-sided, if it does so by more than

.. math:: \sqrt{t_{S-1}(p)^2\, s^2 / S + z(p)^2\, \sigma_e^2 / E}

with :math:`s` the deviation over seeds, :math:`\sigma_e^2 / E` what the choice of E test examples adds, and the upper
quantiles :math:`t` of Student's and :math:`z` of the normal distribution (Howe 1974). Without the second term that is
Student's t-test. Satterthwaite's degrees of freedom would call too much shown: three times the level far out in the
tails, where Holm's method looks, with three seeds.

That a mean lies inside a region takes both ends, so the larger p-value counts (two one-sided tests: Schuirmann 1987);
outside it may lie at either, so the smaller counts twice.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
Verdict = Literal["reproduced", "contradicted", "no effect", "inconclusive", "not run yet"]

VERDICTS: tuple[Verdict, ...] = ("reproduced", "contradicted", "no effect", "inconclusive", "not run yet")
REPRODUCED, CONTRADICTED, NO_EFFECT, INCONCLUSIVE, NOT_RUN = range(len(VERDICTS))

# On so many pages at most one of the claims is called reproduced and is not; the same for each other verdict.
LEVEL = 0.05
# Of the intervals that are shown; they are of one claim by itself, while verdicts are by Holm's method over a page.
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """Means over seeds, the standard error that seeds leave, its degrees of freedom, and what test examples add."""

    mean: Array
    error: Array
    freedom: int
    examples: Array


def estimate(values: ArrayLike, examples: ArrayLike = 0.0) -> Estimate:
    """Of values over seeds (the first axis), each a mean over the same test examples.

    examples: the variance of the mean that the choice of test examples adds, which more seeds do not lower
    (`examples_variance`).

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> float(found.mean), round(float(found.error), 4), found.freedom
    (2.0, 0.5774, 2)
    """
    found = np.asarray(values, float)
    error = found.std(0, ddof=1) / np.sqrt(len(found))
    return Estimate(found.mean(0), error, len(found) - 1, np.sqrt(np.asarray(examples, float)))


def reach(found: Estimate, p: ArrayLike) -> Array:
    """How far means must lie beyond an end for that to be shown at the level p, at most one half."""
    from scipy.stats import norm, t

    return np.asarray(np.hypot(t.isf(p, found.freedom) * found.error, norm.isf(p) * found.examples))


def examples_variance(table: ArrayLike) -> float:
    r"""The variance of a mean that comes from which test examples there are, of numbers by seed and example.

    From the mean squares of seeds x examples without repetition, :math:`(MS_e - MS_r)/(SE)`, 0 at least: what varies
    with the example in all seeds alike. What varies with both at once is in the deviation over seeds already.

    >>> table = [[0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]  # all seeds agree: only examples vary
    >>> round(examples_variance(table), 4)  # a variance of 1/3 over four examples
    0.0833
    """
    found = np.asarray(table, float)
    if found.ndim != 2 or min(found.shape) < 2:
        raise ValueError(f"needs numbers of at least 2 seeds by 2 examples; got the shape {found.shape}")
    seeds, examples = found.shape
    by_example = found.mean(0)
    left = found - by_example - found.mean(1, keepdims=True) + found.mean()
    residual = (left**2).sum() / ((seeds - 1) * (examples - 1))
    return max(float((seeds * by_example.var(ddof=1) - residual) / (seeds * examples)), 0.0)


def p_above(found: Estimate, end: ArrayLike, or_at: bool = False) -> Array:
    """p-values of means being above `end`; without any error 0 or 1, and 1 where the mean is not a number.

    or_at: whether a mean without error that lies on the end is above it.

    >>> round(float(p_above(estimate([1.0, 2.0, 3.0]), 0.0)), 4)
    0.0371
    """
    from scipy.stats import t

    end = np.asarray(end, float)
    apart = found.mean - end
    with np.errstate(invalid="ignore", divide="ignore"):
        p = t.sf(apart / found.error, found.freedom)
    if (found.examples > 0).any():
        p = np.where(found.examples > 0, _searched(found, apart), p)
    beyond = apart >= 0 if or_at else apart > 0
    p = np.where((found.error > 0) | (found.examples > 0), p, np.where(beyond, 0.0, 1.0))
    p = np.where(np.isneginf(end), 0.0, p)
    return np.asarray(np.where(np.isfinite(found.mean) & np.isfinite(found.error), p, 1.0))


def _searched(found: Estimate, apart: Array) -> Array:
    """The p at which `reach` is as far as means lie apart from an end: by halving an interval of log p."""
    far = np.abs(np.where(np.isfinite(apart), apart, 0.0))
    low, high = np.full(far.shape, np.log(1e-12)), np.full(far.shape, np.log(0.5))
    for _ in range(45):
        middle = (low + high) / 2
        shown = reach(found, np.exp(middle)) <= far
        low, high = np.where(shown, low, middle), np.where(shown, middle, high)
    return np.asarray(np.where(apart > 0, np.exp(high), -np.expm1(high)))


def p_inside(found: Estimate, low: ArrayLike, high: ArrayLike) -> Array:
    """p-values of means lying between two ends, which may be infinite."""
    return np.maximum(p_above(found, low), p_above(_turned(found), -np.asarray(high, float)))


def p_outside(found: Estimate, low: ArrayLike, high: ArrayLike) -> Array:
    """p-values of means lying outside, which the ends are part of."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    beyond = np.where(np.isfinite(high), p_above(found, high, or_at=True), 1.0)
    before = np.where(np.isfinite(low), p_above(_turned(found), -low, or_at=True), 1.0)
    sides = np.isfinite(low).astype(int) + np.isfinite(high)
    return np.asarray(np.minimum(np.maximum(sides, 1) * np.minimum(beyond, before), 1.0))


def for_every(p: ArrayLike) -> Array:
    """The p-value that what is tested holds of every cell (the last axis): the largest of theirs."""
    return np.asarray(np.asarray(p, float).max(-1))


def for_some(p: ArrayLike) -> Array:
    """The p-value that it holds of some cell: the smallest, times how many cells there are (Bonferroni)."""
    found = np.asarray(p, float)
    return np.asarray(np.minimum(found.shape[-1] * found.min(-1), 1.0))


def holm(p: ArrayLike) -> Array:
    """Holm's (1979) adjusted p-values along the last axis: at most `LEVEL` keeps the chance of any mistake there.

    NaN is a question that is not asked: it does not count, and its own p-value is 1.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist(), holm([0.01, np.nan]).tolist()
    ([0.03, 0.06, 0.06], [0.01, 1.0])
    """
    raw = np.asarray(p, float)
    order = np.argsort(raw, -1, kind="stable")  # NaN last
    left = (~np.isnan(raw)).sum(-1, keepdims=True) - np.arange(raw.shape[-1])
    ranked = np.nan_to_num(np.take_along_axis(raw, order, -1) * left, nan=1.0)
    adjusted = np.empty_like(raw)
    np.put_along_axis(adjusted, order, np.minimum(np.maximum.accumulate(ranked, -1), 1.0), -1)
    return adjusted


def decide(inside: ArrayLike, outside: ArrayLike, zone: ArrayLike) -> NDArray[Any]:
    """Places in `VERDICTS`, from p-values of lying in the region, outside it, and in the zone of no effect.

    Each is adjusted over the last axis, the claims of a page. The zone goes first: an effect too small to count is
    none, on whichever side of zero it lies.

    >>> [VERDICTS[place] for place in decide([0.001, 0.2, 0.9], [0.9, 0.2, 0.001], [1.0, 1.0, 1.0])]
    ['reproduced', 'inconclusive', 'contradicted']
    """
    choices = [holm(zone) <= LEVEL, holm(inside) <= LEVEL, holm(outside) <= LEVEL]
    return np.select(choices, [NO_EFFECT, REPRODUCED, CONTRADICTED], INCONCLUSIVE)


def _turned(found: Estimate) -> Estimate:
    return found._replace(mean=-found.mean)
