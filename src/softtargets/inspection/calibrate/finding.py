"""Everything `softtargets calibrate` finds out about a file; words and pictures are elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch

import softtargets.calibration as calibration
from softtargets.inspection.calibrate.corrections import (
    Candidate,
    Corrections,
    corrections_of,
    sample_size,
)
from softtargets.inspection.calibrate.remaining import Remaining, remaining_of
from softtargets.inspection.calibrate.repeats import RepeatedRows
from softtargets.inspection.shared.measured import Measured, measured, numbers_of
from softtargets.inspection.shared.numbers import LEVEL, QUANTILE, Estimate
from softtargets.inspection.shared.reading import Told, check_bins, quiet, reading
from softtargets.inspection.shared.two_passes import FEWEST, FirstPass, SecondPass, counted_zeros
from softtargets.predictions import Predictions
from softtargets.selection import LogitNormalisation, Selection, normalisation_of, selection_of

SMALL = 1 << 20  # numbers: of fewer, threads wait for one another longer than they work


@dataclass(frozen=True)
class ClassCalibration:
    """One class: its error (the mean gap over bins of its probability), and by how much it is predicted too often.

    `excess` is the mean probability of the class less its share of the labels.
    """

    index: int
    name: str
    examples: int
    error: float
    mean_probability: float
    share: float
    excess: Estimate


@dataclass(frozen=True)
class Diagnosis(Measured):
    """Calibration of one file, where it comes from, and which correction helps.

    `normalisation` is whether normalised logits would order predictions better. `repeated` is how many rows are equal
    to an earlier one. `remaining` is the calibration error that is left with the recommended correction.
    `commonest` is the class that most labels are, and their share: the accuracy of always predicting it.
    """

    bins: int
    normalisation: LogitNormalisation
    worst: tuple[ClassCalibration, ...]
    corrections: Corrections
    remaining: Remaining
    commonest: tuple[int, float]
    repeated: int = 0

    @property
    def recommended(self) -> Candidate | None:
        """The correction to use; None where the model is to be left as it is."""
        return self.corrections.recommended

    @property
    def normalised(self) -> Selection | None:
        """What rejecting does by normalised logits, on held-out examples; None if not tried, or of no use anywhere."""
        tried = self.normalisation
        used = tried.curve is not None and any(tried.held_out)
        return selection_of(tried.curve, level=LEVEL) if used and tried.curve else None

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        return {
            **self.understood.numbers(),
            "repeated_rows": self.repeated,
            "bins": self.bins,
            "before": numbers_of(self.before),
            "overconfidence": vars(self.overconfidence),
            "zeros": {
                "probabilities": self.zeros.zeros,
                "labels": self.zeros.labelled,
                "count_as": self.zeros.floor,
                "nll_with_floor": vars(self.nll_with_floor) if self.nll_with_floor else None,
            },
            "commonest_class": {"index": self.commonest[0], "share": self.commonest[1]},
            "worst_classes": [asdict(one) for one in self.worst],
            "sweep": {name: list(getattr(self.sweep, name)) for name in ("temperatures", "nll", "ece")},
            "corrections": self.corrections.numbers(),
            "remaining_error": self.remaining.numbers(),
            "temperature": self.scaled.numbers() if self.scaled else None,
            "after": numbers_of(self.after),
            "selection": {**self.selection.numbers(), "normalised_logits": self.normalisation.numbers()},
        }


def inspect(predictions: Predictions, bins: int = 15, told: Told = quiet) -> Diagnosis:
    """Read predictions twice, or thrice if probabilities, and find out all there is to say about their calibration."""
    check_bins(bins)
    small = predictions.examples * predictions.classes <= SMALL
    with calibration.one_thread() if small else nullcontext():
        return _inspect(predictions, bins, told)


def _inspect(predictions: Predictions, bins: int, told: Told) -> Diagnosis:
    rows = sample_size(predictions.examples, predictions.classes)
    zeros = counted_zeros(predictions, told)
    first = FirstPass(predictions, bins, rows, zeros=zeros, normalise=True)
    repeats = RepeatedRows()
    for piece in reading(predictions, "measuring", told):
        first.add(*piece)
        repeats.add(*piece)
    second = SecondPass(first, predictions, told) if first.seen >= FEWEST else None
    if second is not None:
        for piece in reading(predictions, "scaling", told):
            second.add(*piece)
    told("computing intervals", 0, 0)
    found = measured(predictions, first, second)
    told("fitting corrections", 0, 0)
    corrections = corrections_of(found, first)
    remaining = remaining_of(found, corrections, first)
    told("ordering by confidence", 0, 0)
    return Diagnosis(
        **vars(found),
        bins=bins,
        normalisation=normalisation_of(first.normalised or first.ordered, predictions.classes),
        worst=worst_classes(first.sums, predictions.class_names),
        corrections=corrections,
        remaining=remaining,
        commonest=commonest_class(first.sums),
        repeated=repeats.count(),
    )


def commonest_class(sums: calibration.CalibrationSums) -> tuple[int, float]:
    """The class that most labels are, and their share."""
    labels = sums.class_positives.sum(1)
    return int(labels.argmax()), int(labels.max()) / sums.examples


def worst_classes(
    sums: calibration.CalibrationSums, names: Sequence[str] | None = None, most: int = 10
) -> tuple[ClassCalibration, ...]:
    """The classes with the largest calibration errors, worst first.

    The interval of the excess is that of a count: in each bin of its probability a class is the label a binomial number
    of times, and how often is known from the bin, with one half of an example added to each side.
    """
    n, found = sums.examples, []
    errors = torch.cat([(p - y).abs().sum(1) / n for _, p, y in sums.by_class()])
    for k in errors.argsort(descending=True, stable=True)[:most].tolist():
        counts, positives = sums.class_counts[k], sums.class_positives[k]
        rates = (positives.double() + 0.5) / (counts + 1)
        examples, half = (
            int(positives.sum()),
            QUANTILE * float((counts * rates * (1 - rates)).sum().sqrt()) / n,
        )
        mean, share = float(sums.class_probability[k].sum()) / n, examples / n
        excess = Estimate(mean - share, mean - share - half, mean - share + half)
        name = names[k] if names else str(k)
        found.append(ClassCalibration(k, name, examples, float(errors[k]), mean, share, excess))
    return tuple(found)
