"""The losses as pure functions: logits and targets in, one number per example out."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F


def smoothed_cross_entropy(logits: Tensor, target: Tensor, alpha: float, spread: str = "all") -> Tensor:
    r"""Cross-entropy against a smoothed one-hot target, per example.

    .. math:: H(y^{LS}, p), \quad y^{LS}_k = (1 - \alpha) [k = y] + \alpha q_k

    where q is uniform over all K classes (``spread="all"``, Szegedy et al. 2016, PyTorch) or over the K-1
    classes that are not the label (``spread="others"``, tensor2tensor, Chen et al. 2020).

    >>> import torch
    >>> smoothed_cross_entropy(torch.zeros(1, 4), torch.tensor([2]), alpha=0.1)
    tensor([1.3863])
    """
    if spread not in ("all", "others"):
        raise ValueError(f"spread must be 'all' or 'others', not {spread!r}")
    if spread == "all":
        return F.cross_entropy(logits, target, label_smoothing=alpha, reduction="none")
    if logits.shape[-1] < 2:
        raise ValueError("spread='others' needs at least two classes: with one there are no others")
    log_p = F.log_softmax(logits, dim=-1)
    log_p_label = log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    others = (log_p.sum(-1) - log_p_label) / (logits.shape[-1] - 1)
    return -(1 - alpha) * log_p_label - alpha * others


def soft_cross_entropy(logits: Tensor, probabilities: Tensor) -> Tensor:
    r"""Cross-entropy against a whole distribution, per example: :math:`-\sum_k q_k \log p_k`."""
    return -(probabilities * F.log_softmax(logits, dim=-1)).sum(-1)
