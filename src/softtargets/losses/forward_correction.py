"""Forward correction for known label noise."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softtargets.losses.arguments import stochastic
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import soft_cross_entropy


class ForwardCorrection(SoftTargetLoss):
    r"""Cross-entropy of the noisy label with the prediction passed through the noise: :math:`-\log (T^\top p)_y`.

    .. math:: -\log \sum_i T_{iy}\, p_i, \quad T_{ij} = P(\text{noisy label } j \mid \text{clean label } i)

    Patrini et al., "Making deep neural networks robust to label noise: a loss correction approach", 2017, section
    4.2. The model's own p then estimates the *clean* label. The rows of T (``matrix``) sum to 1; Chen et al. 2020 write
    the transpose. T = I is cross-entropy. Computed with logarithms throughout, so that logits of any size are exact.
    A label that T makes impossible, by a column of zeros, has infinite loss and no gradient.

    A target of probabilities is a distribution of noisy labels: :math:`-\sum_j t_j \log (T^\top p)_j`. That takes
    memory for N x K x K numbers.

    >>> import torch
    >>> flips = torch.tensor([[0.8, 0.2], [0.2, 0.8]])
    >>> ForwardCorrection(flips)(torch.tensor([[0.0, 9.0]]), torch.tensor([0]))  # at most about -log 0.2
    tensor(1.6091)
    """

    shown = ("matrix",)

    matrix: Tensor

    def __init__(
        self,
        matrix: Tensor,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self.register_buffer("matrix", stochastic("matrix", matrix))

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """Cross-entropy with the probabilities of noisy labels."""
        batch.check_classes("matrix", self.matrix)
        # Row j of the transpose: which clean labels lead to the noisy label j.
        origins = self.matrix.to(batch.logits.dtype).t()
        if batch.labels is not None:
            return -batch.example_weight * _log_mixture(batch.log_p, origins[batch.labels].log())
        return soft_cross_entropy(_log_mixture(batch.log_p.unsqueeze(-2), origins.log()), batch.mass)


def _log_mixture(log_p: Tensor, log_weights: Tensor) -> Tensor:
    """log sum_i p_i w_i; minus infinity, with gradient zero, where nothing contributes."""
    terms = log_p + log_weights
    nothing = (terms == -math.inf).all(-1)
    total = torch.logsumexp(terms.masked_fill(nothing.unsqueeze(-1), 0), dim=-1)
    return total.masked_fill(nothing, -math.inf)
