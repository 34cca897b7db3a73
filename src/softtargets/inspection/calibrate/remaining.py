"""The calibration error that is left after the recommended correction, and whether other methods would leave less.

A temperature moves all confidences in one direction, and so does little for a model that is too confident about some
examples and not confident enough about others. The correction is then recommended, since it helps, and the confidence
is still not to be trusted. It is called bad if the whole 95 % interval of the ECE, corrected for what scatter adds to
it, lies above `BAD` on held-out examples: few examples never make that verdict, and neither does scatter.

Only then other methods are tried, on held-out examples again: they need many examples and make steps of what a model
says, so that they are no recommendation, but they show whether the scores can be made to mean something. One is worth
trying if the interval of its ECE lies below that of what was left, its Brier score is lower, and its accuracy not
clearly lower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.calibration import Calibration, CalibrationModule, CalibrationSums
from softtargets.inspection.calibrate.corrections import RICHER_FOLDS, Corrections
from softtargets.inspection.shared.measured import Measured, corrected_estimate
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.paired_counts import accuracy_difference
from softtargets.inspection.shared.two_passes import FirstPass

# Confidence and accuracy are five points apart on average: decisions do change.
BAD = 0.05

METHODS: dict[str, Callable[..., CalibrationModule]] = {
    "histogram_binning": calibration.histogram_binning,
    "isotonic_regression": calibration.isotonic_regression,
}


@dataclass(frozen=True)
class OtherMethod:
    """A method that is no recommendation, and what it leaves on held-out examples; `helps` by the rule above."""

    name: str
    ece: Estimate
    brier_score: float
    accuracy: Estimate
    helps: bool

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        return {**vars(self), "ece": vars(self.ece), "accuracy": vars(self.accuracy)}


@dataclass(frozen=True)
class Remaining:
    """Calibration with the recommended correction, or as the model is if there is none, and what others would leave."""

    after: Calibration
    others: tuple[OtherMethod, ...] = ()

    @property
    def ece(self) -> Estimate:
        """The ECE, corrected for scatter."""
        return corrected_estimate(self.after, "expected_calibration_error")

    @property
    def is_bad(self) -> bool:
        """Whether the confidence cannot be trusted even so."""
        return self.ece.low >= BAD

    @property
    def better(self) -> OtherMethod | None:
        """The other method that leaves the least, of those that help."""
        helping = [one for one in self.others if one.helps]
        return min(helping, key=lambda one: one.ece.value) if helping else None

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        return {
            "ece": vars(self.ece),
            "still_bad": self.is_bad,
            "other_methods": [one.numbers() for one in self.others],
        }


def remaining_of(found: Measured, corrections: Corrections, first: FirstPass) -> Remaining:
    """What is left; other methods are tried only if that is bad and rows were kept to try them on."""
    left = Remaining(with_correction(found, corrections))
    if not left.is_bad or corrections.why_not:
        return left
    logits, labels = first.sample()
    others = [other_method(name, logits, labels, first.sums.bins, left) for name in METHODS]
    return replace(left, others=tuple(others))


def with_correction(found: Measured, corrections: Corrections) -> Calibration:
    """Calibration with the recommended correction on examples that it was not fitted to.

    What 0 counts as moves confidences by next to nothing: with that alone it is the calibration as it is.
    """
    best = corrections.recommended
    if best is not None and best.name == "temperature" and found.after is not None:
        return found.after
    return (
        found.before
        if best is None or best.sums is None
        else calibration.calibration_of(best.sums, level=LEVEL)
    )


def other_method(name: str, logits: Tensor, labels: Tensor, bins: int, left: Remaining) -> OtherMethod:
    """Fit to two thirds of the examples and measure on the others, for each third."""
    fold = calibration.fold_of(0, len(labels), RICHER_FOLDS)
    p = torch.empty_like(logits, dtype=torch.float64)
    for held_out in range(RICHER_FOLDS):
        rows, others = fold == held_out, fold != held_out
        fit: Callable[[Tensor, Tensor], CalibrationModule] = partial(METHODS[name], from_logits=True)
        p[rows] = fit(logits[others], labels[others])(logits[rows]).double()
    measured = calibration.calibration_of(
        CalibrationSums.of(p, labels, from_logits=False, bins=bins), level=LEVEL
    )
    ece = corrected_estimate(measured, "expected_calibration_error")
    before, right = logits.argmax(1) == labels, p.argmax(1) == labels
    accuracy = accuracy_difference(int((before & ~right).sum()), int((right & ~before).sum()), len(labels))
    helps = (
        ece.high < left.ece.low and measured.brier_score < left.after.brier_score and not accuracy.below_zero
    )
    return OtherMethod(name, ece, measured.brier_score, accuracy, helps)
