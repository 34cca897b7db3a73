"""How far an estimate may be off: what it would have been with other examples of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.randomness import below, key_words, words


@dataclass(frozen=True, eq=False)
class NoiseInterval:
    """Where the truth lies in a share `level` of cases, if what a method assumes holds.

    `clean_rate` is (low, high); `matrix_low` and `matrix_high` (K, K) are for each entry of T by itself.
    """

    level: float
    resamples: int
    clean_rate: tuple[float, float]
    matrix_low: NDArray[np.float64]
    matrix_high: NDArray[np.float64]


def bootstrap(
    joint: Tensor,
    joint_of: Callable[[Tensor], Tensor],
    examples: int,
    level: float,
    resamples: int,
    seed: int,
    counted: int | None = None,
) -> NoiseInterval:
    """Normal bootstrap intervals (Davison and Hinkley 1997, section 5.2) of the clean rate and of T.

    `joint` is the estimate Q (K, K), `joint_of` takes how often each example counts, (N,), and gives another; Q was
    `counted` from so many of the examples, from all unless said. An interval is the estimate and so many standard
    deviations of resampled ones to either side, cut off at 0 and 1. A hundred resamples are enough for a deviation;
    the far quantiles of as many are too close together.

    Resamples cannot show what no example shows. So an end that is worth less than one of a class's n examples is 0, and
    no upper end is below -log(1 - level) / n, what n examples without a single case allow.
    """
    rates, matrices = [], []
    for resample in range(resamples):
        found = joint_of(resampled(examples, seed, resample))
        rates.append(float(found.trace()))
        matrices.append(_rows(found))
    matrix, stacked = _rows(joint), np.stack(matrices)
    # Of a class that the estimate or all resamples but one lack, nothing is known.
    unknown = np.isnan(matrix) | ((~np.isnan(stacked)).sum(0) < 2)
    stacked[:, unknown] = 0
    wide = NormalDist().inv_cdf((1 + level) / 2)
    reach = wide * np.nanstd(stacked, axis=0, ddof=1)
    counts = (joint.sum(1, keepdim=True) * (counted or examples)).clamp(min=1).numpy()
    low = np.where((matrix - reach) * counts < 1, 0, matrix - reach)
    high = np.minimum(np.maximum(matrix + reach, -np.log(1 - level) / counts), 1)
    low[unknown], high[unknown] = 0, 1
    rate, rate_reach = float(joint.trace()), wide * float(np.std(rates, ddof=1))
    return NoiseInterval(
        level, resamples, (max(rate - rate_reach, 0.0), min(rate + rate_reach, 1.0)), low, high
    )


def _rows(joint: Tensor) -> NDArray[np.float64]:
    """T; NaN for a class that no example is taken for."""
    return (joint / joint.sum(1, keepdim=True)).numpy()


def resampled(examples: int, seed: int, resample: int) -> Tensor:
    """How often each example is drawn in so many draws with replacement, (N,); by seed and number of the resample."""
    drawn = words(key_words(seed, "noise bootstrap"), torch.arange(-(-examples // 4), device="cpu"), resample)
    return torch.bincount(below(drawn.flatten()[:examples], examples), minlength=examples).double()
