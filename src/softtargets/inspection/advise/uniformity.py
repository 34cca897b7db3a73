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


@dataclass(frozen=True)
class Uniformity:
    """How far T is from uniform noise, and the entry that contradicts it most.

    `distance` is the total variation between a row of T and that of uniform noise with as many wrong labels, mean over
    examples. `clean` and `label` are the entry's row and column, `share` is what it is, with its interval widened so
    that all entries hold together, `expected` what it would be.
    """

    distance: float
    clean: int
    label: int
    share: Estimate
    expected: float
    contradicted: bool

    @property
    def is_uniform(self) -> bool:
        """Whether one number is enough: nothing contradicts it, or what does is small."""
        return not self.contradicted or self.distance <= FAR


def uniformity(
    found: NoiseEstimate, matrix: NDArray[np.float64], rate: Estimate, examples: int
) -> Uniformity:
    r"""Compare each entry of T with what uniform noise of the same clean rate would have there.

    Entries have normal intervals from resamples. Here they are widened from 95 % each to 95 % for all K^2 together
    (Bonferroni), and an entry contradicts uniform noise if its interval lies wholly outside what the interval of the
    clean rate allows for. Distance is

    .. math:: \sum_i \pi_i \frac12 \sum_j |T_{ij} - U_{ij}|, \quad U_{ii} = \bar a, \ U_{ij} = \frac{1-\bar a}{K-1}.
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
    share, least, most, usual, outside = (
        float(one[clean, label]) for one in (matrix, low, high, expected, beyond)
    )
    return Uniformity(distance, clean, label, Estimate(share, least, most), usual, outside > 0)
