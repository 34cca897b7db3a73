"""Predictions at many temperatures, from one reading: what the page's slider shows and where fits begin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from softtargets.calibration import Reliability, bin_edges, rows_of_a_piece

PER_OCTAVE = 8
COLDEST, HOTTEST = -2, 3  # powers of 2
TEMPERATURES = tuple(2.0 ** (i / PER_OCTAVE) for i in range(COLDEST * PER_OCTAVE, HOTTEST * PER_OCTAVE + 1))
ONE = -COLDEST * PER_OCTAVE  # the place of T = 1


class TemperatureGrid:
    """Sums over examples for each temperature: likelihood by fold, and reliability bins.

    Temperatures are powers of 2 and 7 steps between, so that exponentials of one are squares of those of twice the
    temperature: only 8 of 41 have to be computed. Squaring five times makes 2e-6 of single
    precision's error of 6e-8.
    """

    def __init__(self, folds: int, bins: int) -> None:
        size = len(TEMPERATURES)
        self.bins, self.folds = bins, folds
        self.examples = torch.zeros(folds, dtype=torch.float64)
        self.nll = torch.zeros(size, folds, dtype=torch.float64)
        self.counts = torch.zeros(size, bins, dtype=torch.float64)
        self.confidence = torch.zeros(size, bins, dtype=torch.float64)
        self.correct = torch.zeros(size, bins, dtype=torch.float64)

    def add(self, logits: Tensor, labels: Tensor, fold: Tensor) -> None:
        """Add examples: logits (n, K), labels (n,) and the fold of each (n,)."""
        for start in range(0, len(logits), step := rows_of_a_piece(logits)):
            some = slice(start, start + step)
            self._add(logits[some], labels[some], fold[some])

    def _add(self, z: Tensor, y: Tensor, fold: Tensor) -> None:
        apart = z - (top := z.max(1, keepdim=True)).values
        correct = (top.indices.squeeze(1) == y).double()
        own = apart.gather(1, y.unsqueeze(1)).squeeze(1).double()
        whole = torch.empty(len(TEMPERATURES), len(z), dtype=torch.float64)
        weights = torch.empty_like(apart)
        for first in range(PER_OCTAVE):
            hottest = len(TEMPERATURES) - 1 - first
            torch.mul(apart, 1 / TEMPERATURES[hottest], out=weights).exp_()
            for place in range(hottest, -1, -PER_OCTAVE):
                whole[place] = weights.sum(1)
                weights.mul_(weights)
        inverse = 1 / torch.tensor(TEMPERATURES, dtype=torch.float64)
        self.nll.index_add_(1, fold, whole.log() - inverse[:, None] * own)
        self.examples.index_add_(0, fold, torch.ones_like(own))
        counts, confidence, right = binned(whole.reciprocal_(), correct, self.bins)
        self.counts += counts
        self.confidence += confidence
        self.correct += right

    def curves(self) -> TemperatureCurves:
        """What was added up, as means."""
        return TemperatureCurves(
            TEMPERATURES,
            tuple((self.nll.sum(1) / self.examples.sum()).tolist()),
            tuple(
                reliability_of_bins(*sums)
                for sums in zip(self.counts, self.confidence, self.correct, strict=True)
            ),
        )

    def best(self) -> float | None:
        """The temperature with the best likelihood of all examples; None if it is not between those of the grid."""
        return lowest(self.nll.sum(1))

    def held_out(self) -> tuple[float, ...] | None:
        """For each fold the temperature that is best for all others; None if one is not within the grid."""
        found = tuple(lowest(self.nll.sum(1) - self.nll[:, fold]) for fold in range(self.folds))
        return tuple(t for t in found if t is not None) if None not in found else None


@dataclass(frozen=True)
class TemperatureCurves:
    """Mean negative log-likelihood in nats and reliability of all examples at each temperature."""

    temperatures: tuple[float, ...]
    nll: tuple[float, ...]
    reliability: tuple[Reliability, ...]

    @property
    def ece(self) -> tuple[float, ...]:
        """The expected calibration error at each temperature."""
        return tuple(curve.expected_calibration_error for curve in self.reliability)

    def at(self, temperature: float) -> tuple[float, Reliability]:
        """The likelihood and the reliability at a temperature that is there."""
        place = self.temperatures.index(temperature)
        return self.nll[place], self.reliability[place]

    def put(self, temperature: float, nll: float, reliability: Reliability) -> TemperatureCurves:
        """The same with one temperature more, in its place; one that is there is replaced."""
        rows = dict(
            zip(self.temperatures, zip(self.nll, self.reliability, strict=True), strict=True),
        ) | {temperature: (nll, reliability)}
        order = tuple(sorted(rows))
        return TemperatureCurves(order, tuple(rows[t][0] for t in order), tuple(rows[t][1] for t in order))


def binned(confidence: Tensor, correct: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Counts, sums of confidence and of correct predictions (rows, bins), from (rows, n) and (n,)."""
    rows = len(confidence)
    edges = bin_edges(bins)[1:-1]
    place = torch.bucketize(confidence, edges, right=True) + bins * torch.arange(rows)[:, None]
    flat = place.flatten()
    sums = (
        torch.bincount(flat, weights, minlength=rows * bins).view(rows, bins)
        for weights in (None, confidence.flatten(), correct.expand(rows, -1).flatten())
    )
    counts, total, right = sums
    return counts.double(), total, right


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
