"""Errors of the top label from groups of examples of nearly the same confidence.

A group has a count, a sum of confidences and a number of correct predictions. Groups are the distinct confidences of
examples that are all at hand, or cells of a stream; what is computed from them is the same. All of it is linear in
the residuals of groups (sum of confidences less correct predictions, as a share of all examples) until absolute values
are taken: that is what `softtargets.calibration.intervals` rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.calibration.confidence_cells import Cells

GRID = 4096  # steps from 0 to 1 in which smooth errors are computed
NARROWEST = 1e-3  # the smallest bandwidth of the smooth error, that of its authors' package


@dataclass(frozen=True)
class Groups:
    """Groups in the order of their confidence, none empty; float64 on the CPU."""

    counts: Tensor
    confidence: Tensor
    correct: Tensor

    @classmethod
    def of_examples(cls, confidence: Tensor, correct: Tensor) -> Groups:
        """A group for each confidence that occurs."""
        values, which, counts = confidence.double().cpu().unique(return_inverse=True, return_counts=True)
        right = torch.zeros(len(values), dtype=torch.float64, device="cpu").index_add_(
            0, which, correct.double().cpu()
        )
        return cls(counts.double(), values * counts, right)

    @classmethod
    def of_cells(cls, sums: Cells) -> Groups:
        """A group for each cell that has examples."""
        counts = sums.cell_counts.cpu()
        full = counts > 0
        return cls(
            counts[full].double(), sums.cell_confidence.cpu()[full], sums.cell_correct.cpu()[full].double()
        )

    @property
    def examples(self) -> float:
        """How many examples there are."""
        return float(self.counts.sum())

    @property
    def places(self) -> Tensor:
        """The mean confidence of each group."""
        return self.confidence / self.counts

    @property
    def residuals(self) -> Tensor:
        """Confidence less correctness of each group, as a share of all examples."""
        return (self.confidence - self.correct) / self.examples


def equal_mass(groups: Groups, bins: int) -> Tensor:
    """The share (groups, bins) of each group in each of the bins that have equal numbers of examples.

    A group that a boundary falls into is divided in proportion, so the order of examples does not matter however many
    have the same confidence, and bins are equally full also where their number does not divide that of examples.
    """
    ends = groups.counts.cumsum(0)
    ends = ends / ends[-1] * bins
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    edges = torch.arange(bins + 1, dtype=torch.float64, device="cpu")
    inside = torch.minimum(ends[:, None], edges[None, 1:]) - torch.maximum(starts[:, None], edges[None, :-1])
    return inside.clamp_(min=0) / (ends - starts)[:, None]


def adaptive_error(groups: Groups, bins: int) -> float:
    """Sum over bins of equal mass of the absolute residual."""
    return float((groups.residuals @ equal_mass(groups, bins)).abs().sum())


def on_grid(places: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """For each place the grid point below, and the parts of it that belong there and to the next one."""
    scaled = places.clamp(0, 1) * steps
    below = scaled.floor().clamp_(max=steps - 1)
    part = scaled - below
    return below.long(), 1 - part, part


def frequencies(places: Tensor, masses: Tensor, steps: int = GRID) -> Tensor:
    """Cosine coefficients (..., steps + 1) of masses (..., groups) at places between 0 and 1, both ends reflecting."""
    below, first, second = on_grid(places, steps)
    nodes = masses.new_zeros((*masses.shape[:-1], steps + 1))
    nodes.index_add_(-1, below, masses * first).index_add_(-1, below + 1, masses * second)
    nodes[..., 0] *= 2  # a mass on the boundary lies on its own reflection
    nodes[..., -1] *= 2
    waves: Tensor = torch.fft.rfft(torch.cat([nodes, nodes[..., 1:-1].flip(-1)], -1))
    return waves.real


def smoothed(coefficients: Tensor, bandwidth: Tensor) -> Tensor:
    """The masses (..., steps + 1) on the grid after smoothing with a Gaussian of this bandwidth that is reflected.

    On an interval with reflecting ends each cosine of frequency k pi shrinks by exp(-(k pi bandwidth)^2 / 2).
    """
    steps = coefficients.shape[-1] - 1
    waves = torch.pi * torch.arange(steps + 1, dtype=torch.float64, device="cpu")
    shrunk = coefficients * torch.exp(-0.5 * (bandwidth[..., None] * waves).square())
    both: Tensor = torch.fft.irfft(shrunk.to(torch.complex128), n=2 * steps)
    masses = both[..., : steps + 1]
    masses[..., 0] /= 2
    masses[..., -1] /= 2
    return masses


def smooth_error(coefficients: Tensor) -> Tensor:
    """The smooth calibration error of coefficients (steps + 1,): the bandwidth that leaves just as much error."""
    low = torch.tensor(NARROWEST, dtype=torch.float64, device="cpu")
    high = torch.ones_like(low)
    for _ in range(30):  # the error falls with the bandwidth
        middle = (low + high) / 2
        if smoothed(coefficients, middle).abs().sum() > middle:
            low = middle
        else:
            high = middle
    return smoothed(coefficients, low).abs().sum()
