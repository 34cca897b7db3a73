"""Confidence against accuracy: reliability bins and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ArrayLike = Tensor | NDArray[np.generic]


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
    p, y = torch.as_tensor(probabilities), torch.as_tensor(labels)
    if p.ndim != 2 or y.shape != p.shape[:1] or p.shape[1] == 0:
        raise ValueError(
            f"need probabilities (N, K) and labels (N), not {tuple(p.shape)} and {tuple(y.shape)}"
        )
    if len(p) == 0:
        raise ValueError("need at least one example")
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    if not bool(torch.isfinite(p).all()):
        raise ValueError("probabilities contain NaN or infinite values")
    confidence, predicted = p.to(torch.float64).max(-1)
    if float(p.min()) < 0 or float(confidence.max()) > 1 + 1e-6:
        raise ValueError("probabilities must lie between 0 and 1; pass softmax(logits), not logits")
    if int(y.min()) < 0 or int(y.max()) >= p.shape[1]:
        raise ValueError(
            f"labels must lie between 0 and {p.shape[1] - 1}, not {int(y.min())} to {int(y.max())}"
        )
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
