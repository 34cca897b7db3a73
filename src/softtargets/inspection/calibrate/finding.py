"""Everything `softtargets calibrate` finds out about a file; words and pictures are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softtargets.inspection.calibrate.classes import ClassCalibration, worst_classes
from softtargets.inspection.calibrate.scalings import ScalingGains, richer_scalings, sample_size, why_not
from softtargets.inspection.shared.measured import Measured, check_bins, measured, numbers_of
from softtargets.inspection.shared.progress import Told, quiet
from softtargets.inspection.shared.two_passes import FEWEST, FirstPass, SecondPass, reading, through
from softtargets.predictions import Predictions


@dataclass(frozen=True)
class Diagnosis(Measured):
    """Calibration of one file and where it comes from; `impossible` counts labels with a probability of exactly 0."""

    bins: int
    impossible: int
    worst: tuple[ClassCalibration, ...]
    richer: ScalingGains

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        return {
            **self.understood.numbers(),
            "bins": self.bins,
            "before": numbers_of(self.before),
            "overconfidence": vars(self.overconfidence),
            "labels_with_probability_zero": self.impossible,
            "worst_classes": [{**vars(one), "excess": vars(one.excess)} for one in self.worst],
            "sweep": {name: list(getattr(self.curves, name)) for name in ("temperatures", "nll", "ece")},
            "richer_scalings": {
                "examples": self.richer.examples,
                "gains": {name: vars(gain) for name, gain in self.richer.gains.items()},
                "why_not": self.richer.why_not,
            },
            "temperature": self.scaled.numbers() if self.scaled else None,
            "after": numbers_of(self.after),
        }


def inspect(predictions: Predictions, bins: int = 15, told: Told = quiet) -> Diagnosis:
    """Read predictions twice and find out all there is to say about their calibration."""
    check_bins(bins)
    first = FirstPass(predictions, bins, sample_size(predictions.examples, predictions.classes))
    through(first, reading(predictions, "measuring", told))
    second = SecondPass(first, predictions, told) if first.seen >= FEWEST else None
    if second is not None:
        through(second, reading(predictions, "scaling", told))
    found = measured(predictions, first, second)
    told("fitting classes", 0, 0)
    reason = why_not(first.seen, predictions.classes)
    return Diagnosis(
        **vars(found),
        bins=bins,
        impossible=first.impossible,
        worst=worst_classes(first.sums, predictions.class_names),
        richer=ScalingGains(0, {}, reason) if reason else richer_scalings(*first.sample()),
    )
