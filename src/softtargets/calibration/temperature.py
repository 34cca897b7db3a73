"""Temperature scaling."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels, as_logits

# A separable fitting set has its optimum at T = 0 and a model worse than chance at infinity, so the search must
# end somewhere; logits of a trained net never need more than this.
LOWEST, HIGHEST = 1e-2, 1e2


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    r"""The temperature T > 0 that minimises the negative log-likelihood of softmax(logits / T).

    Guo et al. 2017. In the inverse temperature b = 1/T the loss is convex, with derivative
    :math:`\mathrm{mean}(E_{p(b)}[z] - z_y)`, which rises with b; its zero is found by bisection on log b, so
    the result never depends on a step size and cannot diverge. Clipped to [0.01, 100].

    >>> logits = torch.tensor([[4.0, 0.0]] * 4)
    >>> round(fit_temperature(logits, torch.tensor([0, 0, 0, 1])), 4)  # sigmoid(4 / T) = 3/4
    3.641
    """
    z = as_logits(logits).to(torch.float64)
    y = as_labels(labels, *z.shape)
    z = z - z.max(-1, keepdim=True).values
    if bool((z == 0).all()):
        return 1.0  # without any difference between logits every temperature is the same
    low: float = 1 / HIGHEST
    high: float = 1 / LOWEST
    # In this order: where every example is right by a wide margin, both slopes underflow to zero.
    if _slope(z, y, high) <= 0:
        return LOWEST
    if _slope(z, y, low) >= 0:
        return HIGHEST
    for _ in range(60):
        middle = math.sqrt(low * high)
        if _slope(z, y, middle) < 0:
            low = middle
        else:
            high = middle
    return 1 / math.sqrt(low * high)


def _slope(z: Tensor, y: Tensor, inverse: float) -> float:
    expected = (torch.softmax(inverse * z, dim=-1) * z).sum(-1)
    return float((expected - z.gather(-1, y.unsqueeze(-1)).squeeze(-1)).mean())
