"""Which classes are given more, or less, probability than they deserve?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.calibration import CalibrationSums
from softtargets.inspection.shared.numbers import QUANTILE, Estimate


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


def worst_classes(
    sums: CalibrationSums, names: Sequence[str] | None = None, most: int = 10
) -> tuple[ClassCalibration, ...]:
    """The classes with the largest calibration errors, worst first.

    The interval of the excess is that of a count: in each bin of its probability a class is the label a binomial number
    of times, and how often is known from the bin, with one half of an example added to each side.
    """
    n, positives = sums.examples, sums.class_positives.double()
    errors = (sums.class_probability - positives).abs().sum(1) / n
    rates = (positives + 0.5) / (sums.class_counts + 1)
    halves = QUANTILE * (sums.class_counts * rates * (1 - rates)).sum(1).sqrt() / n
    found = []
    for k in errors.argsort(descending=True, stable=True)[:most].tolist():
        examples, half = int(positives[k].sum()), float(halves[k])
        mean, share = float(sums.class_probability[k].sum()) / n, examples / n
        excess = Estimate(mean - share, mean - share - half, mean - share + half)
        name = names[k] if names else str(k)
        found.append(ClassCalibration(k, name, examples, float(errors[k]), mean, share, excess))
    return tuple(found)
