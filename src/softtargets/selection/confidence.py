"""Scores by which predictions are accepted or rejected: the maximum probability, and normalised logits."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_floating, refuse_fault, single_or_double

# Integers, so that powers are products: p = 1 to 10 then cost little more than one of them.
POWERS = tuple(range(1, 11))


def less_than_certain(scores: Tensor, *, from_logits: bool) -> Tensor:
    """The maximum probability less 1 (n,), in double precision, of rows (n, K) that have been looked at.

    The distance to 1 keeps its digits where the probability itself would be rounded to 1, as for confident networks
    in single precision. Probabilities are used as they are: those of exactly 1 are tied.

    >>> [f"{x:.1e}" for x in less_than_certain(torch.tensor([[40.0, 0.0], [50.0, 0.0]]), from_logits=True)]
    ['-4.2e-18', '-1.9e-22']
    """
    return certainty_and_class(scores, from_logits=from_logits)[0]


def certainty_and_class(scores: Tensor, *, from_logits: bool) -> tuple[Tensor, Tensor]:
    """`less_than_certain`, and the predicted class (n,), of equal scores the first."""
    top, place = scores.max(1, keepdim=True)
    if not from_logits:
        return top.squeeze(1).double() - 1, place.squeeze(1)
    others = (single_or_double(scores) - single_or_double(top)).exp_().scatter_(1, place, 0.0).sum(1).double()
    return -others / (1 + others), place.squeeze(1)


def normalised_logits(logits: ArrayLike, p: float) -> Tensor:
    r"""The highest logit over the p-norm of all, :math:`\max_k \tilde z_k / \lVert \tilde z \rVert_p`, centred before.

    With :math:`\tilde z = z - \bar z` (Cattelan & Silva, UAI 2024, MaxLogit-pNorm). Multiplying logits by a number,
    as a temperature does, or adding a constant changes nothing, so log-probabilities work too. Rows of equal logits
    get 0, the lowest value. With two classes all examples get the same value, so there is no order.

    Label smoothing suppresses the highest logit more where a prediction is likely to be right than where it is likely
    to be wrong, and this recovers the order of both (Xia et al., ICLR 2025). Any leading shape (..., K).

    >>> normalised_logits(torch.tensor([[4.0, 1.0, 1.0], [8.0, 2.0, 2.0], [1.0, 1.0, 1.0]]), p=2)
    tensor([0.8165, 0.8165, 0.0000])
    """
    if not 0 < p < math.inf:
        raise ValueError(f"p must be a positive number, not {p}")
    z = as_floating(logits, "logits").detach()
    if z.ndim == 0 or 0 in z.shape:
        raise ValueError(f"logits must be (examples, classes), not {tuple(z.shape)}")
    refuse_fault(z.reshape(-1, z.shape[-1]), None, "logits")
    centred, largest, top = _centred(single_or_double(z))
    norm = (centred.abs() / largest.unsqueeze(-1)).pow(p).sum(-1).pow(1 / p)
    return top / largest / norm


def normalised_by_powers(logits: Tensor) -> Tensor:
    """`normalised_logits` of rows (n, K) for all p of `POWERS`, (n, P)."""
    centred, largest, top = _centred(logits)
    shares = centred.abs_().div_(largest.unsqueeze(-1))
    ratio, power = top / largest, shares.clone()
    found = []
    for p in POWERS:
        found.append(ratio / power.sum(-1).pow(1 / p))
        power.mul_(shares)
    return torch.stack(found, dim=-1)


def _centred(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Logits less their mean, the largest of their sizes, and the highest of them; logits all alike have size 1."""
    # The highest first: beside a huge constant in all of them, their mean would have no digits left.
    centred = z - z.amax(-1, keepdim=True)
    centred = centred - centred.mean(-1, keepdim=True)
    largest, top = centred.abs().amax(-1), centred.amax(-1)
    alike = largest == 0
    if bool(alike.any()):
        centred = torch.where(alike.unsqueeze(-1), torch.ones_like(centred), centred)
        largest = torch.where(alike, torch.ones_like(largest), largest)
    return centred, largest, top
