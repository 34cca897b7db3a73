"""Fine cells of confidence, from which everything about the top label is computed.

Cells are nested in the equal-width bins, so sums over a bin are sums over its cells and nothing is lost. Besides, no
cell is wider than 1/4096, and towards 0 and 1, where confidences of trained models crowd, cells are evenly spaced in
log(p / (1 - p)), 1/32 apart. Certainty, exactly 1, is a cell of its own.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

EVEN = 4096  # cells of equal width
REACH, PER_UNIT = 20, 32  # logits from -20 to 20: single precision cannot tell probabilities above 17 from 1


class Cells(Protocol):
    """Sums by cell: counts, confidences, correct predictions."""

    cell_counts: Tensor
    cell_confidence: Tensor
    cell_correct: Tensor

    @property
    def bins(self) -> int:
        """How many bins of equal width the cells are nested in."""


def bin_edges(bins: int) -> Tensor:
    """The edges of equal-width bins, 0 and 1 included: b / bins.

    >>> bin_edges(4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if isinstance(bins, bool) or int(bins) != bins or bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    return torch.arange(int(bins) + 1, dtype=torch.float64, device="cpu") / int(bins)


def cell_edges(bins: int) -> Tensor:
    """The edges between cells, rising; cell c holds [edge c - 1, edge c)."""
    even = torch.arange(EVEN + 1, dtype=torch.float64, device="cpu") / EVEN
    spaced = (
        torch.arange(-REACH * PER_UNIT, REACH * PER_UNIT + 1, dtype=torch.float64, device="cpu") / PER_UNIT
    )
    edges: Tensor = torch.cat([bin_edges(bins), even, torch.sigmoid(spaced)]).unique()
    return edges[1:]


def bin_of_cell(bins: int) -> Tensor:
    """For each cell the bin that it lies in."""
    starts = torch.cat([torch.zeros(1, dtype=torch.float64, device="cpu"), cell_edges(bins)])
    return torch.bucketize(starts, bin_edges(bins)[1:-1], right=True)
