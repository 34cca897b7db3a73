"""Everything `softtargets calibrate` finds out about a file; words and pictures are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softtargets.calibration import Calibration, CalibrationSums, TemperatureFit, calibration_of
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.classes import ClassCalibration, worst_classes
from softtargets.inspection.estimates import LEVEL, Estimate
from softtargets.inspection.grid import TemperatureCurves
from softtargets.inspection.looks import FEWEST, FirstLook, SecondLook, Told, quiet, reading, through
from softtargets.inspection.richer import Richer, richer_scalings, sample_size, why_not
from softtargets.predictions import Predictions

MOST_BINS = 1000  # beyond, a page of 41 diagrams is larger than anyone would open


@dataclass(frozen=True)
class Understood:
    """What was read and how it was understood."""

    path: Path
    examples: int
    classes: int
    kind: str
    reason: str
    source: str
    class_names: tuple[str, ...] | None

    @classmethod
    def of(cls, predictions: Predictions) -> Understood:
        """What a file of predictions says about itself."""
        p = predictions
        return cls(Path(p.path), p.examples, p.classes, p.kind, p.reason, p.source, p.class_names)


@dataclass(frozen=True)
class Scaled:
    """Temperature scaling: the temperature of all examples, and what it does to examples it was not fitted to.

    `after` measures each example scaled by the temperature of the folds it is not in; `temperatures` are those, and
    `gain` is how much lower the negative log-likelihood becomes.
    """

    fit: TemperatureFit
    after: Calibration
    temperatures: tuple[float, ...]
    gain: Estimate

    @property
    def is_known(self) -> bool:
        """Whether there is a temperature to recommend at all."""
        return self.fit.ending == "converged"

    @property
    def interval(self) -> tuple[float, float]:
        """Of the temperature."""
        return self.fit.interval(LEVEL)


@dataclass(frozen=True)
class Inspection:
    """Calibration of one file, before and after scaling.

    `overconfidence` is mean confidence less accuracy; `impossible` counts labels with a probability of exactly 0;
    `scaled` is None where there are too few examples to hold some out.
    """

    understood: Understood
    bins: int
    before: Calibration
    overconfidence: Estimate
    impossible: int
    curves: TemperatureCurves
    worst: tuple[ClassCalibration, ...]
    richer: Richer
    scaled: Scaled | None

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        found: dict[str, Any] = {
            "file": str(self.understood.path),
            "examples": self.understood.examples,
            "classes": self.understood.classes,
            "kind": self.understood.kind,
            "reason": self.understood.reason,
            "source": self.understood.source,
            "bins": self.bins,
            "before": numbers_of(self.before),
            "overconfidence": vars(self.overconfidence),
            "labels_with_probability_zero": self.impossible,
            "worst_classes": [{**vars(one), "excess": vars(one.excess)} for one in self.worst],
            "sweep": {
                "temperatures": list(self.curves.temperatures),
                "nll": list(self.curves.nll),
                "ece": list(self.curves.ece),
            },
            "richer_scalings": {
                "examples": self.richer.examples,
                "gains": {name: vars(gain) for name, gain in self.richer.gains.items()},
                "why_not": self.richer.why_not,
            },
            "temperature": None,
            "after": None,
        }
        if self.scaled:
            fit = self.scaled.fit
            found["temperature"] = {
                "value": fit.temperature,
                "interval": list(self.scaled.interval),
                "standard_error": fit.standard_error,
                "ending": fit.ending,
                "note": fit.note,
                "held_out": list(self.scaled.temperatures),
                "gain": vars(self.scaled.gain),
            }
            found["after"] = numbers_of(self.scaled.after)
        return found


def inspect(predictions: Predictions, bins: int = 15, told: Told = quiet) -> Inspection:
    """Read predictions twice and find out all there is to say about their calibration."""
    check_bins(bins)
    first = FirstLook(predictions, bins, sample_size(predictions.examples, predictions.classes))
    through(first, reading(predictions, "measuring", told))
    before = calibration_of(first.sums, level=LEVEL)
    # Of probabilities the bins are those of the numbers in the file, not of logarithms and back.
    curves = first.grid.curves()
    curves = curves.put(1.0, curves.nll[curves.temperatures.index(1.0)], before.reliability)
    scaled = None
    if first.seen >= FEWEST:
        second = SecondLook(first, predictions, told)
        through(second, reading(predictions, "scaling", told))
        scaled = scaled_of(second)
        if scaled.is_known and scaled.fit.temperature != 1.0:
            curves = curves.put(scaled.fit.temperature, *second.shown()[0])
    told("fitting classes", 0, 0)
    reason = why_not(first.seen, predictions.classes)
    return Inspection(
        understood=Understood.of(predictions),
        bins=bins,
        before=before,
        overconfidence=overconfidence(first.sums),
        impossible=first.impossible,
        curves=curves,
        worst=worst_classes(first.sums, predictions.class_names),
        richer=Richer(0, {}, reason) if reason else richer_scalings(*first.sample()),
        scaled=scaled,
    )


def scaled_of(look: SecondLook) -> Scaled:
    """What a second look has found."""
    after = calibration_of(look.sums, level=LEVEL)
    return Scaled(look.fit(), after, look.temperatures, look.gain())


def overconfidence(sums: CalibrationSums) -> Estimate:
    """Mean confidence less accuracy, from the cells of a stream."""
    counts, correct = sums.cell_counts.double(), sums.cell_correct.double()
    confidence = sums.cell_confidence
    mean = confidence / counts.clamp(min=1)
    squares = (confidence * mean - 2 * mean * correct + correct).sum()
    return Estimate.of_mean(float((confidence - correct).sum()), float(squares), sums.examples)


def check_bins(bins: int) -> None:
    """Refuse a number of bins that makes no diagram."""
    if not 1 <= bins <= MOST_BINS:
        raise SofttargetsError(f"--bins must lie between 1 and {MOST_BINS}, not {bins}")


def numbers_of(found: Calibration) -> dict[str, Any]:
    """A calibration as plain data: each metric, its interval, the bins."""
    bare = replace(found, intervals={})
    return {
        **bare.scalars(),
        "brier_decomposition": vars(found.brier_decomposition),
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "reliability": [vars(one) for one in found.reliability.table(LEVEL)],
    }
