"""Two readings of predictions, from which everything about their calibration follows.

The first measures them as they are and at many temperatures. From it come the temperature and, for each of five parts
of the examples, the temperature that is best for the other four. The second measures every example after scaling by the
temperature of the other parts, and makes the temperature of all exact. So a file of any size is read twice; one of
probabilities once before, to find out what a probability of exactly 0 counts as.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.arrays import single_or_double
from softtargets.calibration import (
    Reliability,
    TemperatureSums,
    ZeroCounts,
    bin_edges,
    rows_of_a_piece,
    sums_at,
)
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.reading import Piece, Told, quiet, reading
from softtargets.predictions import Predictions
from softtargets.selection import ConfidenceRows

FOLDS = 5
FEWEST = 20  # examples that are worth holding some out of
MOST_ORDERED = 1 << 20  # examples that are put in order of their confidence
MOST_NORMALISED = 1 << 18  # of those whose logits are normalised in ten ways
NORMALISED_NUMBERS = 1 << 24  # and of their logits: a norm is known well enough, and more would take long
NEAR = 1e-2  # a Newton step this small leaves an error of about its square
PER_OCTAVE = 8
COLDEST, HOTTEST = -2, 3  # powers of 2
TEMPERATURES = tuple(2.0 ** (i / PER_OCTAVE) for i in range(COLDEST * PER_OCTAVE, HOTTEST * PER_OCTAVE + 1))
Curves = dict[
    float, tuple[float, Reliability]
]  # by temperature, from the lowest: mean NLL in nats, reliability


def as_logits(scores: Tensor, from_logits: bool, floor: float | None = None) -> Tensor:
    """Logits in single or double precision; of probabilities the logarithms, with that of `floor` for 0."""
    if from_logits:
        return single_or_double(scores)
    return calibration.logits_from_probabilities(scores, floor=floor, checked=True)


def counted_zeros(predictions: Predictions, told: Told = quiet) -> ZeroCounts:
    """Probabilities of exactly 0, in one reading; logits have none."""
    zeros = ZeroCounts()
    if predictions.kind == "probabilities":
        for piece in reading(predictions, "looking for zeros", told):
            zeros.add(*piece)
    return zeros


class FirstPass:
    """Predictions as they are: sums for every metric, a grid of temperatures, and a sample of the rows.

    `ordered` is what is kept of each row to put them in order of their confidence, and `normalised` the same with
    normalised logits, on demand; of very many rows, of a sample of them. `zeros` are those of `counted_zeros`.
    """

    def __init__(
        self,
        predictions: Predictions,
        bins: int,
        sample: int = 0,
        *,
        zeros: ZeroCounts,
        normalise: bool = False,
    ) -> None:
        self.from_logits = predictions.kind == "logits"
        self.zeros = zeros
        self.sums = calibration.CalibrationSums.empty(predictions.classes, bins)
        self.grid = TemperatureGrid(FOLDS, bins)
        self.ordered = ConfidenceRows(from_logits=self.from_logits)
        self.normalised = ConfidenceRows(from_logits=self.from_logits, normalise=True) if normalise else None
        self.seen = 0
        self._nll = [0.0, 0.0]
        self._every_ordered = -(-predictions.examples // MOST_ORDERED)
        most = max(1, min(MOST_NORMALISED, NORMALISED_NUMBERS // predictions.classes))
        self._every_normalised = -(-predictions.examples // most)
        # Every so many rows is in the sample, chosen by a hash so that the order of the file does not matter.
        self._every = -(-predictions.examples // sample) if sample else 0
        self._sampled: list[Piece] = []

    def add(self, scores: Tensor, labels: Tensor) -> None:
        """Some rows more."""
        self.sums.add(scores, labels, from_logits=self.from_logits, checked=True)  # by `Predictions`
        logits = as_logits(scores, self.from_logits, self.zeros.floor)
        self.grid.add(logits, labels, calibration.fold_of(self.seen, len(labels), FOLDS))
        if self.zeros.labelled:
            nll = nll_of(logits, labels)
            self._nll = [self._nll[0] + float(nll.sum()), self._nll[1] + float(nll.square().sum())]
        some = self._some(self._every_ordered, len(labels))
        self.ordered.add(scores[some], labels[some])
        if self.normalised is not None:
            some = self._some(self._every_normalised, len(labels))
            self.normalised.add(scores[some], labels[some], logits[some])
        if self._every:
            chosen = calibration.fold_of(self.seen, len(labels), self._every, seed=1) == 0
            self._sampled.append((logits[chosen], labels[chosen]))
        self.seen += len(labels)

    def _some(self, every: int, count: int) -> Tensor | slice:
        return calibration.fold_of(self.seen, count, every, seed=3) == 0 if every > 1 else slice(None)

    def nll_with_floor(self) -> Estimate | None:
        """The negative log-likelihood with the floor for 0, where it would be infinite without."""
        return Estimate.of_mean(self._nll[0], self._nll[1], self.seen) if self.zeros.labelled else None

    def sample(self) -> Piece:
        """Logits and labels of some rows."""
        logits, labels = zip(*self._sampled, strict=True)
        return torch.cat(logits), torch.cat(labels)


class SecondPass:
    """The same predictions after scaling, each example by a temperature that was fitted to others."""

    def __init__(
        self, first: FirstPass, predictions: Predictions, told: Told = quiet, also: Sequence[float] = ()
    ) -> None:
        self.from_logits, bins, self.floor = first.from_logits, first.sums.bins, first.zeros.floor
        self._chunks = calibration.Chunks(
            lambda: reading(predictions, "fitting", told),
            from_logits=self.from_logits,
            checked=True,
            floor=self.floor,
        )
        self.sums = calibration.CalibrationSums.empty(predictions.classes, bins)
        self.seen = 0
        start = first.grid.best()
        self._exact = None if start is not None else calibration.temperature_scaling(self._chunks)
        self._start = self._exact.temperature if self._exact else start or 1.0
        self.temperatures = first.grid.held_out() or tuple(
            calibration.temperature_scaling(
                calibration.in_fold(self._chunks, fold, FOLDS, held_out=False)
            ).temperature
            for fold in range(FOLDS)
        )
        self._newton = [0.0] * len(TemperatureSums._fields)
        self._gain = [0.0, 0.0]
        self._before = 0.0
        self._shown = CurveSums((self._start, *also), bins)

    def add(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Some rows more; returns their scaled logits."""
        logits = as_logits(scores, self.from_logits, self.floor)
        fold = calibration.fold_of(self.seen, len(labels), FOLDS)
        scaled = logits / torch.tensor(self.temperatures, dtype=logits.dtype)[fold, None]
        self.sums.add(scaled, labels, from_logits=True)
        self._shown.add(logits, labels)
        for start in range(0, len(logits), step := rows_of_a_piece(logits)):
            some = slice(start, start + step)
            z, y = logits[some], labels[some]
            here = sums_at([(z, y)], 1 / self._start)
            self._newton = [a + b for a, b in zip(self._newton, here, strict=True)]
            before = nll_of(z, y)
            gain = before - nll_of(scaled[some], y)
            self._before += float(before.sum())
            self._gain[0] += float(gain.sum())
            self._gain[1] += float(gain.square().sum())
        self.seen += len(labels)
        return scaled

    def gain(self) -> Estimate:
        """By how much scaling lowers the negative log-likelihood of an example that the fit has not seen."""
        return Estimate.of_mean(self._gain[0], self._gain[1], self.seen)

    def fit(self) -> calibration.TemperatureFit:
        """The temperature of all examples: one Newton step from where the grid's likelihood is best."""
        if self._exact is not None:
            return self._exact
        here = TemperatureSums(*self._newton)
        inverse = 1 / self._start
        step = -here.slope / (inverse * here.curvature) if here.curvature > 0 else math.inf
        if not abs(step) < NEAR:
            return calibration.temperature_scaling(self._chunks)
        change = inverse * math.expm1(step)
        before, after = self._before, here.nll + here.slope * change + here.curvature * change**2 / 2
        temperature = math.exp(-step) / inverse
        if after > before:
            after, temperature = before, 1.0
        return calibration.TemperatureFit(
            temperature=temperature,
            nll_before=before / self.seen,
            nll_after=after / self.seen,
            examples=self.seen,
            standard_error=temperature**2 * math.sqrt(here.squares) / here.curvature,
            ending="converged",
            passes=2,
        )

    def shown(self) -> list[tuple[float, Reliability]]:
        """Likelihood and reliability of all examples at one temperature: where the fit began, and those of `also`."""
        return self._shown.points()


def nll_of(logits: Tensor, labels: Tensor) -> Tensor:
    """The negative log-likelihood (n,) of each example, in double precision."""
    apart = logits - logits.amax(1, keepdim=True)
    own = apart.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    return apart.exp_().sum(1).double().log() - own


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

    def curves(self) -> Curves:
        """What was added up, as means."""
        return dict(zip(TEMPERATURES, self.points(), strict=True))

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
    place = torch.bucketize(confidence, bin_edges(bins)[1:-1], right=True)
    flat = (place + bins * torch.arange(rows)[:, None]).flatten()
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
