"""Confidence against accuracy: reliability bins and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels, as_probabilities


@dataclass(frozen=True)
class Reliability:
    """Equal-width confidence bins. Empty bins have count 0 and NaN for confidence and accuracy."""

    edges: Tensor
    counts: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def expected_calibration_error(self) -> float:
        """The mean gap between confidence and accuracy, each bin weighted by its share of the examples."""
        full = self.counts > 0
        gaps = (self.confidence - self.accuracy)[full].abs()
        return float((self.counts[full].double() * gaps).sum() / self.counts.sum())


def reliability(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> Reliability:
    """Bin the top-label confidence: bin b holds [b / bins, (b + 1) / bins), the last one also exactly 1.

    >>> r = reliability(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]), bins=2)
    >>> r.counts, r.accuracy[1], r.confidence[1]
    (tensor([0, 2]), tensor(0.5000, dtype=torch.float64), tensor(0.8500, dtype=torch.float64))
    """
    p = as_probabilities(probabilities)
    y = as_labels(labels, *p.shape)
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    confidence, predicted = p.to(torch.float64).max(-1)
    edges = torch.arange(bins + 1, dtype=torch.float64, device=p.device) / bins
    which = torch.bucketize(confidence, edges[1:-1], right=True)
    counts = torch.bincount(which, minlength=bins)
    correct = (predicted == y).to(torch.float64)
    return Reliability(
        edges=edges,
        counts=counts,
        confidence=torch.bincount(which, confidence, minlength=bins) / counts,
        accuracy=torch.bincount(which, correct, minlength=bins) / counts,
    )


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Expected calibration error of the top label, equal-width bins.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N} |\mathrm{conf}(b) - \mathrm{acc}(b)|

    Guo et al. 2017; 15 bins as in Müller et al. 2019, section 3.

    >>> round(expected_calibration_error(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 0])), 6)
    0.1
    """
    return reliability(probabilities, labels, bins).expected_calibration_error
