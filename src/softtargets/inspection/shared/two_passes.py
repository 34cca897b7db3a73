"""Two readings of predictions, from which everything about their calibration follows.

The first measures them as they are and at many temperatures. From it come the temperature and, for each of five parts
of the examples, the temperature that the other four ask for. The second measures every example after scaling by the
temperature of the other parts, and makes the temperature of all exact. So a file of any size is read twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.arrays import single_or_double
from softtargets.calibration import TemperatureSums, rows_of_a_piece, sums_at
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.reading import Piece, Told, quiet, reading
from softtargets.inspection.shared.temperatures import CurveSums, TemperatureGrid
from softtargets.predictions import Predictions

FOLDS = 5
FEWEST = 20  # examples that are worth holding some out of
NEAR = 1e-2  # a Newton step this small leaves an error of about its square


def as_logits(scores: Tensor, from_logits: bool) -> Tensor:
    """Logits in single or double precision; of probabilities the logarithms."""
    if from_logits:
        return single_or_double(scores)
    return calibration.logits_from_probabilities(scores, checked=True)


class FirstPass:
    """Predictions as they are: sums for every metric, a grid of temperatures, and a sample of the rows."""

    def __init__(self, predictions: Predictions, bins: int, sample: int = 0) -> None:
        self.from_logits = predictions.kind == "logits"
        self.sums = calibration.CalibrationSums.empty(predictions.classes, bins)
        self.grid = TemperatureGrid(FOLDS, bins)
        self.seen = self.impossible = 0
        # Every so many rows is in the sample, chosen by a hash so that the order of the file does not matter.
        self._every = -(-predictions.examples // sample) if sample else 0
        self._sampled: list[Piece] = []

    def add(self, scores: Tensor, labels: Tensor) -> None:
        """Some rows more."""
        self.sums.add(scores, labels, from_logits=self.from_logits, checked=True)  # by `Predictions`
        logits = as_logits(scores, self.from_logits)
        self.grid.add(logits, labels, calibration.fold_of(self.seen, len(labels), FOLDS))
        if not self.from_logits:
            self.impossible += int((scores.gather(1, labels.unsqueeze(1)) == 0).sum())
        if self._every:
            chosen = calibration.fold_of(self.seen, len(labels), self._every, seed=1) == 0
            self._sampled.append((logits[chosen], labels[chosen]))
        self.seen += len(labels)

    def sample(self) -> Piece:
        """Logits and labels of some rows."""
        logits, labels = zip(*self._sampled, strict=True)
        return torch.cat(logits), torch.cat(labels)


class SecondPass:
    """The same predictions after scaling, each example by a temperature that was fitted to others."""

    def __init__(
        self, first: FirstPass, predictions: Predictions, told: Told = quiet, also: Sequence[float] = ()
    ) -> None:
        self.from_logits, bins = first.from_logits, first.sums.bins
        self._chunks = calibration.Chunks(
            lambda: reading(predictions, "fitting", told), from_logits=self.from_logits, checked=True
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
        logits = as_logits(scores, self.from_logits)
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

    def shown(self) -> list[tuple[float, calibration.Reliability]]:
        """Likelihood and reliability of all examples at one temperature: where the fit began, and those of `also`."""
        return self._shown.points()


def nll_of(logits: Tensor, labels: Tensor) -> Tensor:
    """The negative log-likelihood (n,) of each example, in double precision."""
    apart = logits - logits.amax(1, keepdim=True)
    own = apart.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    return apart.exp_().sum(1).double().log() - own


def through(one: FirstPass | SecondPass, pieces: Iterable[Piece]) -> None:
    """Give all pieces to a pass."""
    for scores, labels in pieces:
        one.add(scores, labels)
