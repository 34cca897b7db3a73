r"""Differences between two models on the same examples, with intervals; sums only, so that files may have any size.

Likelihood and Brier score are means, whose paired differences have a standard error. For accuracies see
`accuracy_difference`. Calibration errors have intervals of their own, which allow for what scatter adds to them
(`softtargets.calibration.intervals`); `error_difference` makes one for the difference of those, and how closely the
errors of both models go together is found by resampling: examples are dealt into 200 groups by a hash, and each group's
residuals (confidence less correctness), less what they would be if all groups were alike, get a random sign and size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.calibration import Calibration, frequencies
from softtargets.inspection.shared.measured import estimate_of
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.paired_counts import accuracy_difference, mcnemar

GROUPS = 200
STEPS = 512  # of the grid on which residuals are smoothed
DRAWS = 1000
# Of a mean of NLL or Brier scores: what rounding alone makes different when one model is saved as logits and, in single
# precision, as probabilities. It is no scatter, so that no number of examples averages it away.
ROUNDING = 1e-6

# What is compared, by the names of `Differences`, and the metric of `Calibration` it is a difference of.
METRICS = {
    "accuracy": "accuracy",
    "nll": "negative_log_likelihood",
    "brier": "brier_score",
    "ece": "expected_calibration_error",
    "smooth_ece": "smooth_calibration_error",
}


@dataclass(frozen=True)
class ExampleMeasures:
    """What a model says of each example (n,), in double precision but for `predicted`."""

    predicted: Tensor
    confidence: Tensor
    correct: Tensor
    nll: Tensor
    brier: Tensor


def measures_of(logits: Tensor, labels: Tensor) -> ExampleMeasures:
    """Measures of each example, from logits (n, K)."""
    apart = logits - (top := logits.max(1, keepdim=True)).values
    own = apart.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    weights = apart.exp_()
    whole = weights.sum(1).double()
    squares = torch.linalg.vector_norm(weights, dim=1).double().square() / whole.square()
    predicted = top.indices.squeeze(1)
    return ExampleMeasures(
        predicted=predicted,
        confidence=whole.reciprocal(),
        correct=(predicted == labels).double(),
        nll=whole.log() - own,
        brier=(squares - 2 * own.exp() / whole + 1).clamp_(min=0),
    )


class PairedSums:
    """Sums over examples that two models have predicted: B less A of everything."""

    def __init__(self, bins: int) -> None:
        self.bins = bins
        self.examples = 0
        self.moments = torch.zeros(2, 2, dtype=torch.float64)  # NLL and Brier score: sum and sum of squares
        self.only_a_right = self.only_b_right = 0
        self.sizes = torch.zeros(GROUPS, dtype=torch.float64)
        self.binned = torch.zeros(2, GROUPS, bins, dtype=torch.float64)
        self.nodes = torch.zeros(2, GROUPS, STEPS + 1, dtype=torch.float64)

    def add(self, a: ExampleMeasures, b: ExampleMeasures) -> None:
        """Some examples more, in the order in which both files have them."""
        n = len(a.nll)
        group = calibration.fold_of(self.examples, n, GROUPS, seed=2)
        self.examples += n
        for into, d in zip(self.moments, (b.nll - a.nll, b.brier - a.brier), strict=True):
            into += torch.stack([d.sum(), d.square().sum()])
        self.only_a_right += int((a.correct > b.correct).sum())
        self.only_b_right += int((b.correct > a.correct).sum())
        self.sizes.index_add_(0, group, torch.ones(n, dtype=torch.float64))
        for model, one in enumerate((a, b)):
            residual = one.confidence - one.correct
            place = torch.bucketize(one.confidence, calibration.bin_edges(self.bins)[1:-1], right=True)
            self.binned[model].view(-1).index_add_(0, group * self.bins + place, residual)
            below, first, second = calibration.on_grid(one.confidence, STEPS)
            flat = self.nodes[model].view(-1)
            flat.index_add_(0, group * (STEPS + 1) + below, residual * first)
            flat.index_add_(0, group * (STEPS + 1) + below + 1, residual * second)

    def differences(self, a: Calibration, b: Calibration) -> Differences:
        """What came out, given what each model was measured to be by itself."""
        nll, brier = (
            _beyond_rounding(Estimate.of_mean(total, squares, self.examples))
            for total, squares in self.moments.tolist()
        )
        return Differences(
            accuracy=accuracy_difference(self.only_a_right, self.only_b_right, self.examples),
            accuracy_p=mcnemar(self.only_a_right, self.only_b_right),
            nll=nll,
            brier=brier,
            ece=self._error(a, b, "ece", self.binned),
            smooth_ece=self._error(a, b, "smooth_ece", self._smoothed()),
        )

    def _error(self, a: Calibration, b: Calibration, name: str, residuals: Tensor) -> Estimate:
        one, two = (estimate_of(side, METRICS[name]) for side in (a, b))
        return error_difference(one, two, self._correlation(residuals))

    def _smoothed(self) -> Tensor:
        """Residuals of both, smoothed with one bandwidth each, which its own smooth error has chosen."""
        places = torch.arange(STEPS + 1, dtype=torch.float64) / STEPS
        both = []
        for nodes in self.nodes:
            error = calibration.smooth_error(frequencies(places, nodes.sum(0) / self.examples, STEPS))
            width = error.clamp(min=calibration.NARROWEST)
            both.append(calibration.smoothed(frequencies(places, nodes, STEPS), width))
        return torch.stack(both)

    def _correlation(self, sums: Tensor) -> float:
        """Of the errors of both models, over other choices of examples; `sums` (2, groups, ...) are residuals."""
        generator = torch.Generator().manual_seed(0)
        weights = torch.randn(DRAWS, GROUPS, dtype=torch.float64, generator=generator)
        drawn = []
        for one in sums:
            whole = one.sum(0)
            apart = one - (self.sizes / self.examples)[:, None] * whole
            drawn.append((whole + weights @ apart).abs().sum(-1))
        found = float(torch.corrcoef(torch.stack(drawn))[0, 1])
        return found if math.isfinite(found) else 0.0


@dataclass(frozen=True)
class Differences:
    """B less A: what is below 0 is in favour of B, but for the accuracy. `accuracy_p` is McNemar's mid-p value."""

    accuracy: Estimate
    accuracy_p: float
    nll: Estimate
    brier: Estimate
    ece: Estimate
    smooth_ece: Estimate


def _beyond_rounding(found: Estimate) -> Estimate:
    if abs(found.value) >= ROUNDING:
        return found
    return Estimate(found.value, min(found.low, 0.0), max(found.high, 0.0))


def error_difference(a: Estimate, b: Estimate, correlation: float = 0.0) -> Estimate:
    """B less A of two errors that have intervals of their own, which need not be symmetric (Zou & Donner 2008, MOVER).

    How far the difference may lie below is put together from how far B may lie below and A above, as standard errors
    of correlated numbers are. Where an interval begins at 0 the error may be nothing but scatter, which the correlation
    says nothing about: then it counts as 0, and the interval is wider.

    In simulations of 10 classes and 1000 examples (60 repetitions each) intervals of 95 % held the true difference in
    78 to 100 % of cases, fewest where one model is nearly calibrated and the other is not: like the intervals they are
    made of, they are then too short. Models with the same error on the same examples were never said to differ.

    >>> found = error_difference(Estimate(0.05, 0.02, 0.06), Estimate(0.09, 0.06, 0.12))
    >>> round(found.value, 3), round(found.low, 4), round(found.high, 4)
    (0.04, 0.0084, 0.0824)
    """

    if min(a.low, b.low) <= 0:
        correlation = 0.0

    def together(x: float, y: float) -> float:
        x, y = max(x, 0.0), max(y, 0.0)  # a value may lie outside of its interval, which allows for scatter
        return math.sqrt(max(x * x + y * y - 2 * correlation * x * y, 0.0))

    value = b.value - a.value
    return Estimate(
        value,
        value - together(b.value - b.low, a.high - a.value),
        value + together(b.high - b.value, a.value - a.low),
    )
