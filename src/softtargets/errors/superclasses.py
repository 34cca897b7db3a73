"""Near misses and far ones: errors inside a superclass and errors across."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, fields

from softtargets.arrays import ArrayLike, counts_of_classes, labels_of, predicted_classes


@dataclass(frozen=True)
class FineAndCoarse:
    """How many of the examples are mistaken inside the right superclass (fine) and outside it (coarse)."""

    examples: int
    fine: int
    coarse: int

    @property
    def errors(self) -> int:
        """All errors: each is either fine or coarse."""
        return self.fine + self.coarse

    @property
    def error_rate(self) -> float:
        """The share of examples whose class is wrong."""
        return self.errors / self.examples

    @property
    def fine_rate(self) -> float:
        """The share of examples whose superclass is right and whose class is wrong."""
        return self.fine / self.examples

    @property
    def coarse_rate(self) -> float:
        """The share of examples whose superclass is wrong."""
        return self.coarse / self.examples

    @property
    def fine_share(self) -> float:
        """The share of errors that stay inside the superclass; NaN without errors."""
        return self.fine / self.errors if self.errors else math.nan


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over runs (n - 1 in the denominator; NaN for a single run)."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class OverRuns:
    """The same quantities over several runs. `fine_share` is NaN when a run makes no errors."""

    runs: tuple[FineAndCoarse, ...]
    errors: Spread
    fine: Spread
    coarse: Spread
    error_rate: Spread
    fine_rate: Spread
    coarse_rate: Spread
    fine_share: Spread


def fine_and_coarse_errors(predicted: ArrayLike, labels: ArrayLike, superclass: ArrayLike) -> FineAndCoarse:
    """Count errors "in the same super-class" (fine) and "in a different super-class" (coarse).

    Müller et al. 2019, authors' response to the reviewers, on CIFAR-100 with its 20 superclasses of 5 classes.
    `predicted` are classes (N,), or logits or probabilities (N, K); `superclass` (K,) says for each class which
    superclass it belongs to.

    >>> import torch
    >>> kind = torch.tensor([0, 0, 1])  # cat and dog are animals, ship is none
    >>> found = fine_and_coarse_errors(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 0, 0, 2]), kind)
    >>> found
    FineAndCoarse(examples=4, fine=1, coarse=1)
    >>> found.error_rate, found.fine_share
    (0.5, 0.5)
    """
    above = counts_of_classes(superclass, "superclass")
    said = predicted_classes(predicted, len(above))
    true = labels_of(labels, len(said), len(above))
    same = above[said] == above[true]
    return FineAndCoarse(
        examples=len(said), fine=int((same & (said != true)).sum()), coarse=int((~same).sum())
    )


def over_runs(predicted: Iterable[ArrayLike], labels: ArrayLike, superclass: ArrayLike) -> OverRuns:
    """`fine_and_coarse_errors` of several runs on the same examples: mean and standard deviation.

    The authors' response prints counts "over 5 different runs" as 2786 ± 29 errors, 1209 ± 13 fine ("43.4% of total
    errors") and 1577 ± 30 coarse for hard targets. It does not say what ± is; here it is the standard deviation. Nor
    does it say whether the share is a mean of shares; here `fine_share` is, and `fine.mean / errors.mean` the other.

    >>> import torch
    >>> kind, labels = torch.tensor([0, 0, 1]), torch.tensor([0, 0, 2, 2])
    >>> found = over_runs([torch.tensor([1, 1, 2, 0]), torch.tensor([0, 0, 0, 2])], labels, kind)
    >>> found.errors.mean, round(found.errors.deviation, 4), found.fine.mean, found.coarse.mean
    (2.0, 1.4142, 1.0, 1.0)
    """
    runs = tuple(fine_and_coarse_errors(run, labels, superclass) for run in predicted)
    if not runs:
        raise ValueError("over_runs needs the predictions of at least one run")
    names = [field.name for field in fields(OverRuns) if field.name != "runs"]
    return OverRuns(runs, **{name: _spread(getattr(run, name) for run in runs) for name in names})


def _spread(values: Iterable[float]) -> Spread:
    found = [float(value) for value in values]
    if any(map(math.isnan, found)):
        return Spread(math.nan, math.nan)
    return Spread(statistics.fmean(found), statistics.stdev(found) if len(found) > 1 else math.nan)
