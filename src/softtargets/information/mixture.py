"""The mutual information of a known Gaussian mixture: what an estimate should find."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_floating
from softtargets.information.kernels import blocks

REACH = 9.0  # standard deviations beyond which a bell is nothing: exp(-81 / 2) is 3e-18
STEP = 1 / 12  # of the grid, in standard deviations


def mixture_information(means: ArrayLike, std: float) -> float:
    """I(X; Y) in nats for X uniform on N examples and Y normal around means[X], one standard deviation for all.

        I(X; Y) = h(Y) - h(Y | X) = -integral of p(y) log p(y) - log(std sqrt(2 pi e)),
        p(y) = 1/N sum over x of N(y; mean_x, std^2)

    By the trapezoid rule, which converges exponentially for smooth functions that vanish at both ends; error below
    1e-10. Examples more than 18 standard deviations from all others need no integral: groups of examples with such gaps
    between them are told apart with certainty, so that I = sum over groups of n/N (I within the group + log N/n). With
    std = 0 groups are equal means, and I is the entropy of the values.

    >>> round(mixture_information(torch.tensor([-1.0, 1.0]), std=1.0), 6)
    0.336831
    >>> mixture_information(torch.tensor([5.0, 5.0, 8.0, 8.0]), std=0.0) == math.log(2)
    True
    """
    found = as_floating(means, "means").detach()
    if found.ndim != 1 or len(found) == 0:
        raise ValueError(f"means must be (examples,), at least one, not {tuple(found.shape)}")
    if not bool(torch.isfinite(found).all()):
        raise ValueError("means contain NaN or infinite values")
    if not 0 <= std < math.inf:
        raise ValueError(f"std must be a finite number, 0 or more, not {std}")
    centres = found.double().sort().values
    ends = (centres.diff() > 2 * REACH * std).nonzero().flatten() + 1
    total = 0.0
    for group in torch.tensor_split(centres, ends.cpu()):
        share = len(group) / len(centres)
        apart = bool(group[-1] > group[0])
        total += share * ((_within((group - group[0]) / std) if apart else 0.0) - math.log(share))
    return min(max(total, 0.0), math.log(len(centres)))


def _within(centres: Tensor) -> float:
    """The information of sorted means without wide gaps, in units of the standard deviation."""
    low, high = float(centres[0]) - REACH, float(centres[-1]) + REACH
    count = math.ceil((high - low) / STEP) + 1
    grid = torch.linspace(low, high, count, dtype=torch.float64, device=centres.device)
    left = torch.searchsorted(centres, grid - REACH)
    right = torch.searchsorted(centres, grid + REACH, right=True)
    entropy = 0.0
    for points, bells in blocks(left, right):
        density = (grid[points, None] - centres[None, bells]).square_().mul_(-0.5).exp_().sum(1)
        density /= len(centres) * math.sqrt(2 * math.pi)
        entropy -= float(torch.xlogy(density, density).sum())
    return entropy * (high - low) / (count - 1) - 0.5 * math.log(2 * math.pi * math.e)
