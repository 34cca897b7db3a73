r"""Intervals for what does not come out right on average: calibration errors.

An error is the size :math:`\Phi(r)` of residuals: r is confidence less correctness, by group, as a share of all
examples, and :math:`\Phi` adds up absolute values. Residuals scatter, and absolute values turn scatter into error: a
perfectly calibrated model has an error above 0. A bootstrap adds scatter a second time, so its percentiles lie even
higher, and for a model that is calibrated they never include the truth; to subtract the difference once is not enough.

So the question is turned round: which true errors would have shown what was observed? The residuals times a factor
s, from none at all to more than was observed, stand for the truth. Resampling gives their scatter
:math:`\epsilon^*`: counts of right and wrong predictions in each cell are Poisson variables around those observed, so
the cost does not depend on how many examples there are. The interval is

.. math:: \Big\{ \Phi(s r) : \Phi(r) \text{ lies between the outer quantiles of } \Phi(s r + \epsilon^*) \Big\},

and begins at 0 where scatter alone explains what was observed. It is meant for the error of the population in the
same bins. Resampling shows nothing of what no example shows: where all predictions are right, none of a resample is
wrong. But an error is never less than the difference between mean confidence and accuracy, so that no high end lies
below what this difference may be (`difference_interval`); and where nothing scatters, since all are right or none is,
no low end lies above it.

What was observed lies above the truth on average and may lie above the interval. So there is a corrected estimate too,
the error that would have shown more than was observed half of the time (median-unbiased): the same with the median for
both quantiles, which lies inside every interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from softtargets.calibration.binning import Reliability, normal_quantile, wilson
from softtargets.calibration.confidence_cells import bin_of_cell
from softtargets.calibration.groups import NARROWEST, Groups, equal_mass, frequencies, smooth_error, smoothed
from softtargets.calibration.sums import CalibrationSums
from softtargets.calibration.workspace import ahead

Interval = tuple[float, float]
Corrected = tuple[float, float, float]  # the low end, the corrected estimate, the high end
Error = Callable[[Tensor], Tensor]
COARSE = 512  # steps of the grid for resampled smooth errors
HALVINGS = 16
AT_ONCE = 16  # resamples that are worked on at a time: they stay in the cache
MOST = 64.0  # how many times what was observed the truth may be


def intervals_of(
    sums: CalibrationSums, groups: Groups, curve: Reliability, level: float, resamples: int, seed: int
) -> tuple[dict[str, Interval], dict[str, float]]:
    """The intervals of all metrics, by name: Wilson's for accuracies, normal ones for means, and those of errors.

    And the corrected estimates of those errors that scatter makes larger.
    """
    top = sums.ranks.cumsum(0).double() / sums.examples
    low, high = wilson(top, torch.tensor(sums.examples, device="cpu"), level)
    bin_of_group = bin_of_cell(sums.bins)[sums.cell_counts > 0]
    errors = {
        **intervals_of_groups(groups, bin_of_group, sums.bins, level, resamples, seed),
        "classwise_calibration_error": classwise_interval(sums, level),
    }
    intervals = {
        "accuracy": (float(low[0]), float(high[0])),
        "top_5_accuracy": (float(low[-1]), float(high[-1])),
        "negative_log_likelihood": _of_mean(sums.moments[:2], sums.examples, level),
        "brier_score": _of_mean(sums.moments[2:], sums.examples, level),
        **{name: (least, most) for name, (least, _, most) in errors.items()},
        "maximum_calibration_error": maximum_interval(curve, level),
    }
    # This one is corrected already, by what scatter adds to squares on average; it may differ from the median.
    name, own = "debiased_calibration_error", curve.debiased_calibration_error
    intervals[name] = min(intervals[name][0], own), max(intervals[name][1], own)
    return intervals, {key: value for key, (_, value, _) in errors.items() if key != name}


def resampled(groups: Groups, resamples: int, seed: int) -> Iterator[Tensor]:
    """Resampled scatter (some, groups) around the residuals of groups, some resamples at a time."""
    if resamples < 2:
        raise ValueError(f"intervals need at least 2 resamples, better 1000, not {resamples}")
    generator = torch.Generator().manual_seed(seed)
    both = torch.stack([groups.correct, groups.counts - groups.correct])
    places, residuals = groups.places, groups.residuals

    def draw(count: int) -> Tensor:
        return torch.poisson(both.expand(count, 2, -1), generator=generator)

    sizes = [min(AT_ONCE, resamples - start) for start in range(0, resamples, AT_ONCE)]
    with ThreadPoolExecutor(1) as pool:
        for drawn in ahead(draw, sizes, pool, 1):  # draws take longer than all that is made of them
            right, wrong = drawn.unbind(1)
            counts = right + wrong
            total = counts.sum(1, keepdim=True).clamp_(min=1)
            yield counts.mul_(places).sub_(right).div_(total).sub_(residuals)


def intervals_of_groups(
    groups: Groups, bin_of_group: Tensor, bins: int, level: float, resamples: int, seed: int
) -> dict[str, Corrected]:
    """Intervals of the errors of the top label and their corrected estimates, by name."""
    even = torch.nn.functional.one_hot(bin_of_group, bins).double()
    shares = (groups.counts @ even) / groups.examples
    even, shares = even[:, shares > 0], shares[shares > 0]
    mass = equal_mass(groups, bins)
    places, residuals = groups.places, groups.residuals
    waves = frequencies(places, residuals, COARSE)
    # The smooth error is above e exactly where smoothing with bandwidth e leaves more than e: one bandwidth is enough.
    bandwidth = smooth_error(waves).clamp(min=NARROWEST)

    def views(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return values @ even, values @ mass, smoothed(frequencies(places, values, COARSE), bandwidth)

    parts = [views(scatter) for scatter in resampled(groups, resamples, seed)]
    in_even, in_mass, on_grid = zip(views(residuals), map(torch.cat, zip(*parts, strict=True)), strict=True)

    smallest, largest = difference_interval(groups, level)
    scattered = 0 < int(groups.correct.sum()) < groups.examples

    def inside(low: float, middle: float, high: float) -> Corrected:
        high = min(max(high, largest), 1.0)
        low = min(low, high) if scattered else min(low, smallest)
        return low, min(max(middle, low), high), high

    def interval(view: tuple[Tensor, Tensor], error: Error) -> Corrected:
        return inside(*(float(error(one * view[0])) for one in factors(error, *view, level)))

    scaled = factors(_sum, *on_grid, level)
    return {
        "expected_calibration_error": interval(in_even, _sum),
        "adaptive_calibration_error": interval(in_mass, _sum),
        "debiased_calibration_error": interval(in_even, lambda r: (r.square() / shares).sum(-1).sqrt()),
        "smooth_calibration_error": inside(*(float(smooth_error(one * waves)) for one in scaled)),
    }


def difference_interval(groups: Groups, level: float) -> Interval:
    r"""How little and how far mean confidence and accuracy may be apart: no error of the top label is less.

    From Wilson's interval of the accuracy, with as many examples as have the standard error of the difference: where
    confidences tell which predictions are right, it scatters less than the accuracy does. Its width is not 0 where all
    predictions are right, or all wrong.

    >>> from softtargets.calibration import CalibrationSums
    >>> three = CalibrationSums.of(torch.eye(3), torch.arange(3), from_logits=False)  # certain, and right
    >>> least, most = difference_interval(Groups.of_cells(three), 0.95)
    >>> round(least, 3), round(most, 3)
    (0.0, 0.561)
    """
    n, z2 = groups.examples, normal_quantile(level) ** 2
    said, right = float(groups.confidence.sum()) / n, float(groups.correct.sum()) / n
    squares = groups.counts * groups.places.square() - 2 * groups.places * groups.correct + groups.correct
    scatter = float(squares.sum()) / n - (said - right) ** 2
    known = right * (1 - right) - scatter  # what of the variance confidences explain
    middle = (right + z2 / (2 * n)) / (1 + z2 / n)  # Wilson's: no mistakes so far do not mean none
    binomial = middle * (1 - middle)
    effective = n * binomial / max(binomial - known, 1e-3 * binomial)
    low, high = _wilson(right, effective, level)
    return max(said - high, low - said, 0.0), max(said - low, high - said)


def factors(error: Error, observed: Tensor, scatter: Tensor, level: float) -> tuple[float, float, float]:
    """The smallest and the largest factor that what was observed is not too large, or too small, for.

    Between them the one for which it would be the median.
    """
    normal_quantile(level)  # refuses a level that is none
    point = float(error(observed))
    if point == 0:
        return 0.0, 0.0, 0.0

    def crossing(share: float, most: float) -> float:
        return _crossing(lambda s: float(error(s * observed + scatter).quantile(share)), point, most)

    low = crossing((1 + level) / 2, 1.0)
    # Where less was observed than scatter alone would show, no factor is left: then up to what was observed.
    high = max(low, crossing((1 - level) / 2, MOST)) or 1.0
    return low, min(max(crossing(0.5, 1.0), low), high), high  # scatter never makes errors smaller


def classwise_interval(sums: CalibrationSums, level: float) -> Corrected:
    """The interval of the class-wise error, and its corrected estimate.

    The same in closed form: there are so many cells, K times bins, that their sum is normal, and the mean and the
    variance of an absolute value are known for each (the folded normal distribution).
    """
    examples, full = sums.examples, sums.class_counts > 0
    n, p, y = (
        table[full].double() for table in (sums.class_counts, sums.class_probability, sums.class_positives)
    )
    gap = (p - y) / examples
    # How often a class occurs in a cell scatters by what is expected; half of it by the net's own account, since a
    # cell that has seen none of its class may still see some.
    share = ((p + y) / (2 * n)).clamp(0, 1)
    # Half of it is observed, which makes share * (1 - share) too small: of a share that is right, by 1 / (4 n) of it.
    deviation = (n * share * (1 - share) * n / (n - 0.25)).sqrt() / examples
    width = normal_quantile(level)

    def quantile(factor: float, sign: int) -> float:
        mean = _folded(factor * gap, deviation)
        # Residuals of one example add up to 0 over classes: they are not independent. Twice the variance covers.
        variance = 2 * ((factor * gap).square() + deviation.square() - mean.square()).sum()
        return float(mean.sum()) + sign * width * math.sqrt(max(float(variance), 0.0))

    point = float(gap.abs().sum())
    low = _crossing(lambda factor: quantile(factor, 1), point, 1.0)
    high = max(low, _crossing(lambda factor: quantile(factor, -1), point, MOST))
    middle = min(max(_crossing(lambda factor: quantile(factor, 0), point, 1.0), low), high)
    least = 2 * _largest_gap_above_half(sums, level)
    return tuple(one / sums.classes for one in (low * point, middle * point, max(high * point, least)))  # type: ignore[return-value]


def _largest_gap_above_half(sums: CalibrationSums, level: float) -> float:
    """How far probabilities above 1/2 and what comes of them may be apart, as a share of all examples.

    The residuals of an example add up to 0 over classes: what is missing there is too much elsewhere, and the absolute
    values of all cells add up to twice as much at least.
    """
    above = torch.arange(sums.bins, device="cpu") * 2 >= sums.bins
    n, p, y = (
        float(table[:, above].double().sum())
        for table in (sums.class_counts, sums.class_probability, sums.class_positives)
    )
    if n == 0:
        return 0.0
    low, high = _wilson(y / n, n, level)
    return n / sums.examples * max(p / n - low, high - p / n)


def maximum_interval(curve: Reliability, level: float) -> Interval:
    r"""The interval of the maximum error: what all bins at once allow.

    A largest gap hangs on bins of a few examples, where resampling says nothing. So the accuracy of each of the B bins
    that have examples gets its exact interval (Clopper and Pearson 1934) at the level :math:`1 - (1 - level) / B`
    (Bonferroni). All of them hold together with at least the level, and then the true maximum lies between the largest
    of the least gaps and the largest of the largest gaps that they allow. It is wide where a bin has few examples, and
    is meant for the bins that have any.

    >>> from softtargets.calibration import reliability
    >>> curve = reliability(torch.tensor([[0.9, 0.1]]).repeat(100, 1), torch.tensor([0] * 50 + [1] * 50))
    >>> low, high = maximum_interval(curve, 0.95)  # gap 0.4; 50 of 100 are 0.4 to 0.6
    >>> round(low, 3), round(high, 3)
    (0.298, 0.502)
    """
    from scipy.special import betaincinv

    normal_quantile(level)  # refuses a level that is none
    full = curve.counts > 0
    n, said = curve.counts[full].double().numpy(), curve.confidence[full].double().numpy()
    right = (n * curve.accuracy[full].double().numpy()).round()
    tail = (1 - level) / len(n) / 2
    lowest = np.where(right > 0, betaincinv(np.maximum(right, 1), n - right + 1, tail), 0.0)
    highest = np.where(right < n, betaincinv(right + 1, np.maximum(n - right, 1), 1 - tail), 1.0)
    least = np.maximum(lowest - said, said - highest).max()
    return max(float(least), 0.0), float(np.maximum(said - lowest, highest - said).max())


def _of_mean(moments: Tensor, examples: int, level: float) -> Interval:
    """A mean and what it may be off by, from sums of values and of squares; infinite for a single example."""
    mean, square = (moments / examples).tolist()
    variance = max(square - mean * mean, 0.0) / (examples - 1) if examples > 1 else math.inf
    half = normal_quantile(level) * math.sqrt(variance)
    return max(mean - half, 0.0), mean + half


def _wilson(share: float, examples: float, level: float) -> Interval:
    both = torch.tensor([share, examples], dtype=torch.float64, device="cpu")
    low, high = wilson(both[0], both[1], level)
    return float(low), float(high)


def _crossing(rising: Callable[[float], float], level: float, most: float) -> float:
    """Where a rising function reaches a level: 0 if it begins above it, `most` if it stays below."""
    if rising(0.0) >= level:
        return 0.0
    low, high = 0.0, min(1.0, most)
    while rising(high) < level:
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < level else (low, middle)
    return (low + high) / 2


def _folded(mean: Tensor, deviation: Tensor) -> Tensor:
    """The mean of the absolute value of a normal variable."""
    ratio = torch.where(deviation > 0, mean / deviation, torch.zeros_like(mean))
    folded = deviation * math.sqrt(2 / math.pi) * torch.exp(-ratio.square() / 2)
    folded = folded + mean * torch.erf(ratio / math.sqrt(2))
    return torch.where(deviation > 0, folded, mean.abs())


def _sum(residuals: Tensor) -> Tensor:
    return residuals.abs().sum(-1)
