"""Everything `softtargets calibrate` finds out about a file; words and pictures are elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.inspection.shared.measured import Measured, measured, numbers_of
from softtargets.inspection.shared.numbers import LEVEL, QUANTILE, Estimate
from softtargets.inspection.shared.reading import Told, check_bins, quiet, reading
from softtargets.inspection.shared.two_passes import FEWEST, FirstPass, SecondPass, nll_of
from softtargets.predictions import Predictions
from softtargets.selection import LogitNormalisation, Selection, normalisation_of, selection_of

MOST_CLASSES = 256  # beyond, fits read the sample too often for what they could find out
PER_CLASS = 20  # examples for each class: a scale and a bias are not known from fewer
SAMPLE = 1 << 21  # numbers that are kept in memory for these fits
RICHER_FOLDS = 3

RICHER: dict[str, Callable[[calibration.Chunks], calibration.Scaling]] = {
    "temperature and a bias for each class": calibration.bias_corrected_temperature,
    "a scale and a bias for each class (vector scaling)": calibration.vector_scaling,
}


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
class ScalingGains:
    """What each way of scaling gains over a temperature alone, in nats per example; or why it was not tried."""

    examples: int
    gains: dict[str, Estimate]
    why_not: str = ""


@dataclass(frozen=True)
class Diagnosis(Measured):
    """Calibration of one file and where it comes from; `impossible` counts labels with a probability of exactly 0.

    `normalisation` is whether normalised logits would order predictions better; `zeros` counts examples with any
    probability of exactly 0, whose logarithm is then a number that was chosen.
    """

    bins: int
    impossible: int
    zeros: int
    normalisation: LogitNormalisation
    worst: tuple[ClassCalibration, ...]
    richer: ScalingGains

    @property
    def normalised(self) -> Selection | None:
        """What rejecting does by normalised logits, on examples that had no say in their norm; None if not tried."""
        curve = self.normalisation.curve
        return None if curve is None else selection_of(curve, level=LEVEL)

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        return {
            **self.understood.numbers(),
            "bins": self.bins,
            "before": numbers_of(self.before),
            "overconfidence": vars(self.overconfidence),
            "labels_with_probability_zero": self.impossible,
            "worst_classes": [asdict(one) for one in self.worst],
            "sweep": {name: list(getattr(self.sweep, name)) for name in ("temperatures", "nll", "ece")},
            "richer_scalings": asdict(self.richer),
            "temperature": self.scaled.numbers() if self.scaled else None,
            "after": numbers_of(self.after),
            "selection": {**self.selection.numbers(), "normalised_logits": self.normalisation.numbers()},
        }


def inspect(predictions: Predictions, bins: int = 15, told: Told = quiet) -> Diagnosis:
    """Read predictions twice and find out all there is to say about their calibration."""
    check_bins(bins)
    rows = sample_size(predictions.examples, predictions.classes)
    first = FirstPass(predictions, bins, rows, normalise=True)
    for piece in reading(predictions, "measuring", told):
        first.add(*piece)
    second = SecondPass(first, predictions, told) if first.seen >= FEWEST else None
    if second is not None:
        for piece in reading(predictions, "scaling", told):
            second.add(*piece)
    found = measured(predictions, first, second)
    told("fitting classes", 0, 0)
    reason = why_not(first.seen, predictions.classes)
    return Diagnosis(
        **vars(found),
        bins=bins,
        impossible=first.impossible,
        zeros=first.ordered.zeros,
        normalisation=normalisation_of(first.normalised or first.ordered, predictions.classes),
        worst=worst_classes(first.sums, predictions.class_names),
        richer=ScalingGains(0, {}, reason) if reason else richer_scalings(*first.sample()),
    )


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


def sample_size(examples: int, classes: int) -> int:
    """How many rows to keep for `richer_scalings`; 0 if it has no use for any."""
    return 0 if why_not(examples, classes) else min(examples, SAMPLE // classes)


def why_not(examples: int, classes: int) -> str:
    """Why richer ways of scaling are not tried; empty if they are."""
    if classes > MOST_CLASSES:
        return f"it was not tried, since there are {classes:,} classes, more than {MOST_CLASSES}"
    rows = min(examples, SAMPLE // classes)
    if rows < PER_CLASS * classes:
        return (
            f"it was not tried, since {rows:,} examples are too few for {classes:,} classes: "
            f"numbers for each class need at least {PER_CLASS} examples per class"
        )
    return ""


def richer_scalings(logits: Tensor, labels: Tensor) -> ScalingGains:
    """Fit to two thirds of the examples and measure on the others, for each third, against a temperature alone.

    The gain of an example is its negative log-likelihood with a temperature less that with more numbers; its mean has
    the standard error of paired differences.
    """
    chunks = calibration.Chunks(lambda: [(logits, labels)], checked=True)  # by the first pass
    fold = calibration.fold_of(0, len(labels), RICHER_FOLDS)
    gains = {name: torch.zeros(len(labels), dtype=torch.float64) for name in RICHER}
    for held_out in range(RICHER_FOLDS):
        others = calibration.in_fold(chunks, held_out, RICHER_FOLDS, held_out=False)
        rows = (fold == held_out).nonzero().flatten()
        z, y = logits[rows], labels[rows]
        alone = nll_of(calibration.temperature_scaling(others)(z), y)
        for name, fit in RICHER.items():
            gains[name][rows] = alone - nll_of(fit(others)(z), y)
    found = {
        name: Estimate.of_mean(float(gain.sum()), float(gain.square().sum()), len(gain))
        for name, gain in gains.items()
    }
    return ScalingGains(len(labels), found)
