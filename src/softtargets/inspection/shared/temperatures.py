"""Predictions at many temperatures, from one reading: what the page's slider shows and where fits begin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softtargets.calibration import Reliability, bin_edges, rows_of_a_piece

PER_OCTAVE = 8
COLDEST, HOTTEST = -2, 3  # powers of 2
TEMPERATURES = tuple(2.0 ** (i / PER_OCTAVE) for i in range(COLDEST * PER_OCTAVE, HOTTEST * PER_OCTAVE + 1))
ONE = -COLDEST * PER_OCTAVE  # the place of T = 1


@dataclass(frozen=True)
class TemperatureCurves:
    """Mean negative log-likelihood in nats and reliability of all examples at each temperature, from the lowest."""

    points: Mapping[float, tuple[float, Reliability]]

    @property
    def temperatures(self) -> tuple[float, ...]:
        """All that there are."""
        return tuple(self.points)

    @property
    def nll(self) -> tuple[float, ...]:
        """The likelihood at each temperature."""
        return tuple(nll for nll, _ in self.points.values())

    @property
    def ece(self) -> tuple[float, ...]:
        """The expected calibration error at each temperature."""
        return tuple(curve.expected_calibration_error for _, curve in self.points.values())

    def put(self, temperature: float, nll: float, reliability: Reliability) -> TemperatureCurves:
        """The same with one temperature more, in its place; one that is there is replaced."""
        return TemperatureCurves(dict(sorted({**self.points, temperature: (nll, reliability)}.items())))


class CurveSums:
    """Sums over examples at some temperatures: likelihood by fold, and reliability bins."""

    def __init__(self, temperatures: Sequence[float], bins: int, folds: int = 1) -> None:
        self.temperatures = tuple(temperatures)
        self.examples = 0
        self.nll = torch.zeros(len(temperatures), folds, dtype=torch.float64)
        self.bins = torch.zeros(3, len(temperatures), bins, dtype=torch.float64)  # see `binned`

    def add(self, logits: Tensor, labels: Tensor, fold: Tensor | None = None) -> None:
        """Add examples: logits (n, K), labels (n,) and the fold of each (n,)."""
        for start in range(0, len(logits), step := rows_of_a_piece(logits)):
            some = slice(start, start + step)
            self._add(logits[some], labels[some], None if fold is None else fold[some])

    def _add(self, z: Tensor, y: Tensor, fold: Tensor | None) -> None:
        apart = z - (top := z.max(1, keepdim=True)).values
        correct = (top.indices.squeeze(1) == y).double()
        own = apart.gather(1, y.unsqueeze(1)).squeeze(1).double()
        whole = self._whole(apart)
        inverse = 1 / torch.tensor(self.temperatures, dtype=torch.float64)
        nll = whole.log() - inverse[:, None] * own
        if fold is None:
            self.nll += nll.sum(1, keepdim=True)
        else:
            self.nll.index_add_(1, fold, nll)
        self.examples += len(y)
        self.bins += binned(whole.reciprocal_(), correct, self.bins.shape[2])

    def _whole(self, apart: Tensor) -> Tensor:
        """Sums of exponentials (T, n) in double precision."""
        return torch.stack([(apart * (1 / t)).exp_().sum(1) for t in self.temperatures]).double()

    def points(self) -> list[tuple[float, Reliability]]:
        """Likelihood and reliability at each temperature, as means."""
        means = (self.nll.sum(1) / self.examples).tolist()
        curves = [reliability_of_bins(*sums) for sums in self.bins.unbind(1)]
        return list(zip(means, curves, strict=True))


class TemperatureGrid(CurveSums):
    """Sums at powers of 2 and 7 steps between.

    Exponentials at a temperature are squares of those at twice the temperature: only 8 of 41 have to be computed.
    Squaring five times makes 2e-6 of single precision's error of 6e-8.
    """

    def __init__(self, folds: int, bins: int) -> None:
        super().__init__(TEMPERATURES, bins, folds)

    def _whole(self, apart: Tensor) -> Tensor:
        whole = torch.empty(len(TEMPERATURES), len(apart), dtype=torch.float64)
        weights = torch.empty_like(apart)
        for first in range(PER_OCTAVE):
            hottest = len(TEMPERATURES) - 1 - first
            torch.mul(apart, 1 / TEMPERATURES[hottest], out=weights).exp_()
            for place in range(hottest, -1, -PER_OCTAVE):
                whole[place] = weights.sum(1)
                weights.mul_(weights)
        return whole

    def curves(self) -> TemperatureCurves:
        """What was added up, as means."""
        return TemperatureCurves(dict(zip(TEMPERATURES, self.points(), strict=True)))

    def best(self) -> float | None:
        """The temperature with the best likelihood of all examples; None if it is not between those of the grid."""
        return lowest(self.nll.sum(1))

    def held_out(self) -> tuple[float, ...] | None:
        """For each fold the temperature that is best for all others; None if one is not within the grid."""
        found = tuple(lowest(self.nll.sum(1) - fold) for fold in self.nll.unbind(1))
        return tuple(t for t in found if t is not None) if None not in found else None


def binned(confidence: Tensor, correct: Tensor, bins: int) -> Tensor:
    """Counts, sums of confidence and of correct predictions (3, rows, bins), from (rows, n) and (n,)."""
    rows = len(confidence)
    place = (
        torch.bucketize(confidence, bin_edges(bins)[1:-1], right=True) + bins * torch.arange(rows)[:, None]
    )
    flat = place.flatten()
    weights = (None, confidence.flatten(), correct.expand(rows, -1).flatten())
    sums = [torch.bincount(flat, one, minlength=rows * bins).double() for one in weights]
    return torch.stack(sums).view(3, rows, bins)


def reliability_of_bins(counts: Tensor, confidence: Tensor, correct: Tensor) -> Reliability:
    """A reliability diagram from sums (bins,)."""
    return Reliability(bin_edges(len(counts)), counts.long(), confidence / counts, correct / counts)


def lowest(nll: Tensor) -> float | None:
    """The temperature where the likelihood of the grid is best: of the quartic through the five points around.

    None at the ends of the grid, and where all temperatures are alike.

    >>> x = torch.tensor(TEMPERATURES, dtype=torch.float64).log()
    >>> round(lowest((x - math.log(1.37)).cosh()), 4)
    1.37
    """
    values = nll.numpy()
    place = int(np.argmin(values))
    if not 2 <= place <= len(values) - 3 or float(np.ptp(values)) <= 1e-9 * abs(float(values[place])):
        return None
    quartic = np.polynomial.Polynomial.fit(np.arange(-2, 3), values[place - 2 : place + 3], 4)
    roots = quartic.deriv().roots()
    real = [float(root.real) for root in roots if abs(root.imag) < 1e-9 and abs(root.real) <= 1]
    if not real:
        return None
    steps = min(real, key=lambda root: float(quartic(root)))
    return math.exp(math.log(TEMPERATURES[place]) + steps * math.log(2) / PER_OCTAVE)
