r"""The mathematics of the losses as pure functions on rows: one row of logits and one number per example.

Everything here follows from one idea. A classifier is trained against a target

.. math:: (1 - a)\,\mathrm{onehot}(y) + a\,q

and the methods differ in where a and q come from, plus at most one extra term.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F


def label_cross_entropy(log_p: Tensor, labels: Tensor) -> Tensor:
    r"""The hard part of a target: :math:`-\log p_y` for each row.

    >>> label_cross_entropy(torch.log(torch.tensor([[0.5, 0.25, 0.25]])), torch.tensor([1]))
    tensor([1.3863])
    """
    return -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def soft_cross_entropy(log_p: Tensor, q: Tensor) -> Tensor:
    r"""The soft part of a target: :math:`-\sum_k q_k \log p_k` for each row, with :math:`0 \log 0 = 0`.

    q is one distribution for all rows, (K,), or one for each, (N, K).

    >>> soft_cross_entropy(torch.log(torch.tensor([[0.5, 0.25, 0.25]])), torch.tensor([0.5, 0.5, 0.0]))
    tensor([1.0397])
    """
    # A class that the target excludes may have probability zero: 0 * -inf must not become NaN.
    return -(q * log_p.masked_fill(q == 0, 0)).sum(-1)


def blend(a: float | Tensor, hard: Tensor, soft: Tensor) -> Tensor:
    r""":math:`(1 - a)` of the hard part of a loss and a of the soft one; a part that has no share may be infinite.

    >>> blend(torch.tensor(0.0), torch.tensor([1.0]), torch.tensor([torch.inf]))
    tensor([1.])
    """
    return share(1 - a, hard) + share(a, soft)


def share(mass: float | Tensor, losses: Tensor) -> Tensor:
    r"""A part of a loss, with :math:`0 \cdot \infty = 0`."""
    if isinstance(mass, Tensor):
        return mass * losses.masked_fill((mass == 0) & losses.isinf(), 0)
    return mass * losses if mass else torch.zeros_like(losses)


def entropy(log_p: Tensor) -> Tensor:
    r"""The entropy of each row: :math:`H(p) = -\sum_k p_k \log p_k`, with :math:`0 \log 0 = 0`.

    >>> entropy(torch.log(torch.tensor([[0.5, 0.5, 0.0]])))
    tensor([0.6931])
    """
    return -(log_p.exp() * log_p.masked_fill(log_p == -math.inf, 0)).sum(-1)


def relative_entropy(log_p: Tensor) -> Tensor:
    r"""Entropy as a fraction of the largest possible, :math:`H(p) / \log K`; 0 when there is one class only."""
    classes = log_p.shape[-1]
    return entropy(log_p) / math.log(classes) if classes > 1 else log_p.sum(-1) * 0


def divergence(log_q: Tensor, log_p: Tensor) -> Tensor:
    r"""How far p is from q, for each row: :math:`KL(q \| p) = \sum_k q_k \log (q_k / p_k)`, with :math:`0 \log 0 = 0`.

    >>> divergence(torch.log(torch.tensor([[0.5, 0.5, 0.0]])), torch.log(torch.tensor([[0.25, 0.75, 0.0]])))
    tensor([0.1438])
    """
    # Where q is zero the difference may be inf - inf; it must not reach the gradient either.
    difference = (log_q - log_p).masked_fill(log_q == -math.inf, 0)
    return (log_q.exp() * difference).sum(-1)


def divergence_from_uniform(log_q: Tensor) -> Tensor:
    r"""How far each row is from knowing nothing: :math:`KL(q \| U) = \log K - H(q)`."""
    return math.log(log_q.shape[-1]) - entropy(log_q)


def softened(logits: Tensor, temperature: float | Tensor) -> Tensor:
    r"""Log-probabilities at a temperature: :math:`\log \mathrm{softmax}(z / T)`."""
    return F.log_softmax(logits / temperature, dim=-1)


def without_autocast(device: torch.device) -> AbstractContextManager[None]:
    """A block in which autocast, which knows nothing of meta tensors, rounds no probabilities."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def wide(logits: Tensor) -> Tensor:
    """Half precision becomes single: sums over classes are never taken in half precision."""
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
