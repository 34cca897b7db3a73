"""Which classes are given more, or less, probability than they deserve?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.calibration import CalibrationSums
from softtargets.inspection.shared.estimates import QUANTILE, Estimate


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
    n = sums.examples
    errors = (sums.class_probability - sums.class_positives).abs().sum(1) / n
    order = errors.argsort(descending=True, stable=True)[:most].tolist()
    found = []
    for k in order:
        counts, positives = sums.class_counts[k].double(), sums.class_positives[k].double()
        rate = (positives + 0.5) / (counts + 1)
        half = QUANTILE * math.sqrt(float((counts * rate * (1 - rate)).sum())) / n
        mean = float(sums.class_probability[k].sum()) / n
        share = float(positives.sum()) / n
        excess = mean - share
        found.append(
            ClassCalibration(
                index=k,
                name=names[k] if names else str(k),
                examples=int(positives.sum()),
                error=float(errors[k]),
                mean_probability=mean,
                share=share,
                excess=Estimate(excess, excess - half, excess + half),
            )
        )
    return tuple(found)
