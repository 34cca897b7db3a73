"""Calibration where only confidence is known, and whether each prediction is right: no scores of other classes.

Everything about the top label can be said from that: accuracy, reliability, the calibration errors of confidence. What
needs the other classes cannot: the likelihood of labels that were not predicted, errors by class, and a temperature,
which changes a confidence by what the other scores are.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_floating, as_tensor
from softtargets.calibration.binning import Reliability, reliability_of, wilson
from softtargets.calibration.confidence_cells import bin_edges, bin_of_cell, cell_edges
from softtargets.calibration.groups import Groups, adaptive_error, frequencies, smooth_error
from softtargets.calibration.intervals import Interval, intervals_of_groups, maximum_interval
from softtargets.calibration.workspace import one_thread

_SUMS = ("cell_counts", "cell_confidence", "cell_correct", "squares")


@dataclass
class ConfidenceSums:
    """Counts, confidences and correct predictions by cell of confidence, as in `CalibrationSums`; sums can be added.

    >>> sums = ConfidenceSums.empty().add(torch.tensor([0.9, 0.6]), torch.tensor([True, False]))
    >>> sums.examples, sums.add(torch.tensor([0.7]), torch.tensor([1])).examples
    (2, 3)
    """

    cell_counts: Tensor
    cell_confidence: Tensor
    cell_correct: Tensor
    squares: Tensor  # the sum of (confidence - correct)^2
    bins: int

    @classmethod
    def empty(cls, bins: int = 15, device: torch.device | str = "cpu") -> ConfidenceSums:
        """The sums over no examples."""
        bins = len(bin_edges(bins)) - 1
        cells = len(cell_edges(bins)) + 1
        numbers = partial(torch.zeros, dtype=torch.int64, device=device)
        sums = partial(torch.zeros, dtype=torch.float64, device=device)
        return cls(numbers(cells), sums(cells), numbers(cells), sums(()), bins)

    @property
    def examples(self) -> int:
        """How many examples have been added."""
        return int(self.cell_counts.sum())

    def add(self, confidence: ArrayLike, correct: ArrayLike) -> ConfidenceSums:
        """Add examples, in place: probabilities (...) of what was predicted, and whether it was right. Returns itself.

        If anything is wrong with them, nothing is added.
        """
        p, right = checked_confidences(confidence, correct)
        cell = torch.bucketize(p, cell_edges(self.bins).to(p.device), right=True)
        for table, values in (
            (self.cell_counts, torch.ones_like(right)),
            (self.cell_confidence, p),
            (self.cell_correct, right),
        ):
            new = torch.zeros(len(table), dtype=table.dtype, device=p.device).index_add_(0, cell, values)
            table.add_(new.to(table.device))
        self.squares.add_((p - right).square().sum().to(self.squares.device))
        return self

    def merge(self, other: ConfidenceSums) -> ConfidenceSums:
        """Add the sums of other examples, in place. Returns itself."""
        self._check_bins(other)
        for name in _SUMS:
            own = getattr(self, name)
            own.add_(getattr(other, name).to(own.device))
        return self

    def without(self, some: ConfidenceSums) -> ConfidenceSums:
        """The sums of the examples that are left without some of them; both stay as they are.

        >>> some = ConfidenceSums.empty().add(torch.tensor([0.7]), torch.tensor([1]))
        >>> ConfidenceSums.empty().merge(some).add(torch.tensor([0.6]), torch.tensor([0])).without(some).examples
        1
        """
        self._check_bins(some)
        left = replace(self)
        for name in _SUMS:
            own = getattr(self, name)
            setattr(left, name, own - getattr(some, name).to(own.device))
        return left

    def _check_bins(self, other: ConfidenceSums) -> None:
        if self.bins != other.bins:
            raise ValueError(
                f"sums can only be added if they have the same number of bins, not {self.bins} and {other.bins}"
            )


@dataclass(frozen=True)
class ConfidenceCalibration:
    """The calibration of confidences; each number means the same as in `Calibration`.

    `squared_error` is the mean of (confidence - correct)^2, the Brier score of "this prediction is right".
    """

    examples: int
    accuracy: float
    mean_confidence: float
    squared_error: float
    expected_calibration_error: float
    adaptive_calibration_error: float
    debiased_calibration_error: float
    smooth_calibration_error: float
    maximum_calibration_error: float
    reliability: Reliability
    intervals: dict[str, Interval]
    corrected: dict[str, float] = field(default_factory=dict)

    def scalars(self) -> dict[str, float]:
        """The metrics that are one number each, by name: for a log."""
        return {
            one.name: value for one in fields(self) if isinstance(value := getattr(self, one.name), float)
        }


def measure_confidences(
    confidence: ArrayLike,
    correct: ArrayLike,
    bins: int = 15,
    *,
    level: float | None = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> ConfidenceCalibration:
    """Calibration from the probability of each prediction (...) and whether it is right (...), True or False.

    The same numbers that `measure_calibration` gives for the scores they come from. `level=None` leaves out intervals.

    >>> found = measure_confidences(torch.tensor([0.9, 0.8, 0.7, 0.6]), torch.tensor([1, 1, 0, 1]), level=None)
    >>> round(found.expected_calibration_error, 3), found.accuracy
    (0.35, 0.75)
    """
    sums = ConfidenceSums.empty(bins).add(confidence, correct)
    return confidence_calibration_of(sums, level=level, resamples=resamples, seed=seed)


@one_thread()
def confidence_calibration_of(
    sums: ConfidenceSums, *, level: float | None = 0.95, resamples: int = 1000, seed: int = 0
) -> ConfidenceCalibration:
    """Calibration of the examples in a `ConfidenceSums`."""
    examples = sums.examples
    if examples == 0:
        raise ValueError("there is nothing to measure: no example has been added")
    curve, groups = reliability_of(sums), Groups.of_cells(sums)
    correct = sums.cell_correct.sum().double().cpu() / examples
    intervals: dict[str, Interval] = {}
    corrected: dict[str, float] = {}
    if level is not None:
        which = bin_of_cell(sums.bins)[sums.cell_counts.cpu() > 0]
        errors = intervals_of_groups(groups, which, sums.bins, level, resamples, seed)
        low, high = wilson(correct, torch.tensor(examples, device="cpu"), level)
        name, own = "debiased_calibration_error", curve.debiased_calibration_error
        intervals = {
            "accuracy": (float(low), float(high)),
            **{key: (least, most) for key, (least, _, most) in errors.items()},
            "maximum_calibration_error": maximum_interval(curve, level),
        }
        intervals[name] = min(intervals[name][0], own), max(intervals[name][1], own)
        corrected = {key: value for key, (_, value, _) in errors.items() if key != name}
    return ConfidenceCalibration(
        examples=examples,
        accuracy=float(correct),
        mean_confidence=curve.mean_confidence,
        squared_error=float(sums.squares) / examples,
        expected_calibration_error=curve.expected_calibration_error,
        adaptive_calibration_error=adaptive_error(groups, sums.bins),
        debiased_calibration_error=curve.debiased_calibration_error,
        smooth_calibration_error=float(smooth_error(frequencies(groups.places, groups.residuals))),
        maximum_calibration_error=curve.maximum_calibration_error,
        reliability=curve,
        intervals=intervals,
        corrected=corrected,
    )


def checked_confidences(confidence: ArrayLike, correct: ArrayLike) -> tuple[Tensor, Tensor]:
    """Probabilities (n,) in double precision and whether each prediction is right (n,) as 0 or 1, or a refusal.

    >>> checked_confidences(torch.tensor([0.5, 1.5]), torch.tensor([1, 0]))
    Traceback (most recent call last):
    ValueError: the confidence of example 1 is 1.5; it must lie between 0 and 1
    """
    p = as_floating(confidence, "confidences").detach().double().reshape(-1)
    right = as_tensor(correct).detach().reshape(-1).to(p.device)
    if p.shape != right.shape:
        raise ValueError(
            f"there must be one value of right (1) or wrong (0) for each of the {len(p)} confidences, not "
            f"{len(right)}"
        )
    if bool((wrong := ~((p >= 0) & (p <= 1))).any()):  # NaN included
        place = int(wrong.nonzero()[0])
        raise ValueError(
            f"the confidence of example {place} is {float(p[place]):g}; it must lie between 0 and 1"
        )
    if bool((other := (right != 0) & (right != 1)).any()):
        place = int(other.nonzero()[0])
        raise ValueError(f"example {place} must be right (1) or wrong (0), not {float(right[place]):g}")
    return p, right.long()
