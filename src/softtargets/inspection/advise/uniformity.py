"""Is label noise uniform? Whether one number can describe it, or a matrix is worth its trouble."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from softtargets.inspection.shared.numbers import LEVEL, QUANTILE, Estimate
from softtargets.noise import NoiseEstimate
from softtargets.theory import uniform_matrix

# Rows of T were found within this total variation in simulations (see `estimate_noise`): what is closer to uniform
# noise than that is not worth a matrix that is itself no better known.
FAR = 0.05
# Standard deviations by which wrong labels of all classes together must differ from an even spread.
CLEARLY = 3.0


@dataclass(frozen=True)
class Uniformity:
    """How far T is from uniform noise, and the entry that contradicts it most.

    `distance` is the total variation between a row of T and that of uniform noise with as many wrong labels, mean over
    examples. `clean` and `label` are the entry's row and column, `share` is what it is, with its interval widened so
    that all entries hold together, `expected` what it would be. `together`: no entry contradicts uniform noise by
    itself, but all of them together do.
    """

    distance: float
    clean: int
    label: int
    share: Estimate
    expected: float
    contradicted: bool
    together: bool = False

    @property
    def is_uniform(self) -> bool:
        """Whether one number is enough: nothing contradicts it, or what does is small."""
        return not self.contradicted or self.distance <= FAR


def uniformity(
    found: NoiseEstimate, matrix: NDArray[np.float64], rate: Estimate, examples: int
) -> Uniformity:
    r"""Compare each entry of T with what uniform noise of the same clean rate would have there.

    T was counted from so many `examples`. Its entries have normal intervals from resamples. Here they are widened
    from 95 % each to 95 % for all K^2 together (Bonferroni), and an entry contradicts uniform noise if its interval
    lies wholly outside what the interval of the clean rate allows for. Distance is

    .. math:: \sum_i \pi_i \frac12 \sum_j |T_{ij} - U_{ij}|, \quad U_{ii} = \bar a, \ U_{ij} = \frac{1-\bar a}{K-1}.

    Where no entry does, all together may (`uneven`): if the wrong labels of each class are spread less evenly over
    the others than chance explains, and the distance is more than `FAR` beyond half of what mistakes of the model may
    add at most, which is how far the higher end of the clean rate lies above its estimate. Of random forests on
    digits and Fashion-MNIST, uniform noise deviated by −2 to 1 standard deviations, and noise into the next class by
    30 and more.
    """
    assert found.interval is not None
    classes = len(matrix)
    expected, low_rate, high_rate = (
        uniform_matrix(min(max(a, 0.0), 1.0), classes) for a in (rate.value, rate.low, rate.high)
    )
    lowest, highest = np.minimum(low_rate, high_rate), np.maximum(low_rate, high_rate)
    wider = NormalDist().inv_cdf(1 - (1 - LEVEL) / classes**2 / 2) / QUANTILE
    counts = np.maximum(found.shares * examples, 1)[:, None]
    # Ends at 0 or 1 are cut off; the other side still shows the reach.
    reach = wider * np.maximum(found.interval.matrix_high - matrix, matrix - found.interval.matrix_low)
    # An entry worth less than one example may be chance. What no example, or every one, shows has no scatter among
    # resamples; so many examples without a case still allow for this.
    allowed = -np.log((1 - LEVEL) / classes**2) / counts
    low = np.where((matrix - reach) * counts < 1, 0.0, np.clip(matrix - reach, 0, np.maximum(1 - allowed, 0)))
    high = np.clip(matrix + reach, np.minimum(allowed, 1), 1)
    beyond = np.maximum(low - highest, lowest - high)
    beyond[np.isnan(found.matrix)] = -math.inf
    clean, label = (int(i) for i in np.unravel_index(int(beyond.argmax()), beyond.shape))
    distance = float((found.shares[:, None] * np.abs(matrix - expected)).sum() / 2)
    contradicted, together = bool(beyond[clean, label] > 0), False
    if not contradicted and distance - (rate.high - rate.value) / 2 > FAR:
        deviation, most_uneven = uneven(found, matrix, counts[:, 0])
        if together := deviation > CLEARLY:
            clean, label = most_uneven
    share, least, most, usual = (float(one[clean, label]) for one in (matrix, low, high, expected))
    estimate = Estimate(share, least, most)
    return Uniformity(distance, clean, label, estimate, usual, contradicted or together, together)


def uneven(
    found: NoiseEstimate, matrix: NDArray[np.float64], counts: NDArray[np.float64]
) -> tuple[float, tuple[int, int]]:
    r"""By how many standard deviations wrong labels are spread unevenly over the other classes, and where most.

    Of the w_i wrong labels of class i, c_ij are labelled j. Pearson's statistic has these moments, however small counts
    are, if each of the m other classes is as likely:

    .. math:: X^2 = \sum_i \left(\frac{m}{w_i} \sum_j c_{ij}^2 - w_i\right), \quad E = \sum_i (m - 1), \quad
              V = \sum_i 2 (m - 1) (1 - 1 / w_i).

    Rows count as so many examples as their intervals are worth, `counts` at most.
    """
    assert found.interval is not None
    others = len(matrix) - 1
    known = ~np.isnan(found.matrix) & (matrix > 0)
    deviation = np.maximum(found.interval.matrix_high - matrix, matrix - found.interval.matrix_low) / QUANTILE
    worth = (known * matrix * (1 - matrix)).sum(1) / np.maximum((known * deviation**2).sum(1), 1e-12)
    wrong = np.rint(np.where(known, matrix, 0) * np.minimum(counts, worth)[:, None])
    np.fill_diagonal(wrong, 0)
    total = wrong.sum(1)
    some = total >= 2
    if others < 2 or not some.any():
        return 0.0, (0, 0)
    statistic = (others * (wrong[some] ** 2).sum(1) / total[some] - total[some]).sum()
    variance = (2 * (others - 1) * (1 - 1 / total[some])).sum()
    even = np.maximum(total, 1)[:, None] / others
    excess = np.where(some[:, None], (wrong - even) / np.sqrt(even), -math.inf)
    clean, label = (int(i) for i in np.unravel_index(int(excess.argmax()), excess.shape))
    return float((statistic - some.sum() * (others - 1)) / math.sqrt(variance)), (clean, label)
