"""Confidence against accuracy: reliability bins, and the errors that follow from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.confidence_cells import Cells, bin_edges, bin_of_cell
from softtargets.calibration.sums import CalibrationSums


@dataclass(frozen=True)
class ReliabilityBin:
    """One bin of a reliability diagram: from `low` to `high`, and what its examples come to (NaN without any)."""

    low: float
    high: float
    count: int
    share: float
    confidence: float
    accuracy: float
    accuracy_low: float
    accuracy_high: float


@dataclass(frozen=True)
class Reliability:
    """Equal-width confidence bins. Empty bins have count 0 and NaN for confidence and accuracy."""

    edges: Tensor
    counts: Tensor
    confidence: Tensor
    accuracy: Tensor

    def __repr__(self) -> str:
        examples, error = int(self.counts.sum()), 100 * self.expected_calibration_error
        return f"Reliability({len(self.counts)} bins, {examples} examples, ECE {error:.2f} %)"

    @property
    def expected_calibration_error(self) -> float:
        """The mean gap between confidence and accuracy, each bin weighted by its share of the examples."""
        full = self.counts > 0
        return float((self._shares * self._gaps.abs())[full].sum())

    @property
    def maximum_calibration_error(self) -> float:
        """The largest gap of a bin that has examples."""
        return float(self._gaps[self.counts > 0].abs().max())

    @property
    def debiased_calibration_error(self) -> float:
        """The root mean square gap without the part that is noise; see the function of this name."""
        some = self.counts > 1
        noise = self.accuracy * (1 - self.accuracy) / (self.counts - 1)
        squared = float((self._shares * (self._gaps.square() - noise))[some].sum())
        return math.sqrt(max(squared, 0.0))

    @property
    def mean_confidence(self) -> float:
        """The mean confidence of all examples."""
        return float((self._shares * self.confidence)[self.counts > 0].sum())

    def accuracy_interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Wilson's interval for the accuracy of each bin (Wilson 1927); NaN where there is nothing.

        It stays between 0 and 1 and has a width also where all examples of a bin are right.
        """
        return wilson(self.accuracy, self.counts, level)

    def table(self, level: float = 0.95) -> tuple[ReliabilityBin, ...]:
        """The data of a reliability diagram, one entry for each bin.

        >>> r = reliability(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]), bins=2)
        >>> last = r.table()[1]
        >>> last.count, round(last.confidence, 2), last.accuracy, round(last.accuracy_low, 3)
        (2, 0.85, 0.5, 0.095)
        """
        columns = (self.edges[:-1], self.edges[1:], self.counts, self._shares, self.confidence, self.accuracy)
        both = (column.tolist() for column in (*columns, *self.accuracy_interval(level)))
        return tuple(ReliabilityBin(*row) for row in zip(*both, strict=True))

    @property
    def _gaps(self) -> Tensor:
        return self.confidence - self.accuracy

    @property
    def _shares(self) -> Tensor:
        return self.counts.double() / self.counts.sum()


def wilson(share: Tensor, counts: Tensor, level: float) -> tuple[Tensor, Tensor]:
    """Wilson's interval for a probability, from how often it happened."""
    z = normal_quantile(level)
    n = counts.double()
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)).sqrt()
    # At 0 and 1 the interval ends there exactly, which rounding may miss.
    return torch.where(share <= 0, share, middle - half), torch.where(share >= 1, share, middle + half)


def normal_quantile(level: float) -> float:
    """The number of standard deviations around the mean that hold this probability.

    >>> round(normal_quantile(0.95), 4)
    1.96
    """
    if not 0 < level < 1:
        raise ValueError(
            f"the level of an interval must lie between 0 and 1, such as 0.95 for 95 %, not {level}"
        )
    return NormalDist().inv_cdf((1 + level) / 2)


def reliability(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> Reliability:
    """Bin the top-label confidence: bin b holds [b / bins, (b + 1) / bins), the last one also exactly 1.

    torchmetrics bins the same way but for confidence 1, which it counts in a bin of its own after the last; netcal
    closes bins above, (b / bins, (b + 1) / bins].

    >>> r = reliability(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]), bins=2)
    >>> r.counts, r.accuracy[1], r.confidence[1]
    (tensor([0, 2]), tensor(0.5000, dtype=torch.float64), tensor(0.8500, dtype=torch.float64))
    """
    return reliability_of(CalibrationSums.of(probabilities, labels, from_logits=False, bins=bins))


def reliability_of(sums: Cells) -> Reliability:
    """The reliability bins of examples that were added up, on the CPU."""
    bins = sums.bins
    which = bin_of_cell(bins)
    counts = torch.zeros(bins, dtype=torch.int64, device="cpu").index_add_(0, which, sums.cell_counts.cpu())
    confidence = torch.zeros(bins, dtype=torch.float64, device="cpu").index_add_(
        0, which, sums.cell_confidence.cpu()
    )
    correct = torch.zeros(bins, dtype=torch.int64, device="cpu").index_add_(0, which, sums.cell_correct.cpu())
    return Reliability(bin_edges(bins), counts, confidence / counts, correct / counts.double())
