"""Focal loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.losses.arguments import number
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.fusing import Rule


class FocalLoss(SoftTargetLoss):
    r"""Cross-entropy that fades for examples already learnt: :math:`-(1 - p_y)^\gamma \log p_y`.

    Lin et al., "Focal loss for dense object detection", 2017, equation 4; gamma = 2 worked best there. The factor
    is part of the loss, so gradients flow through it; ``detach=True`` treats it as a constant weight instead, as the
    translation experiments of Raunak et al. 2020 do. gamma = 0 is cross-entropy. For a target of
    probabilities every class contributes its own term, :math:`-\sum_k t_k (1 - p_k)^\gamma \log p_k`.

    >>> import torch
    >>> FocalLoss(gamma=2.0)(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.1733)
    """

    gamma: float | Tensor
    # What p is multiplied by inside the factor (1 + slope * p) ** gamma.
    slope: float | Tensor = -1.0

    def __init__(
        self,
        gamma: float | Tensor = 2.0,
        detach: bool = False,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)
        self._number("gamma", number("gamma", gamma, 0))
        self.detach = bool(detach)

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """The factor times cross-entropy."""
        if batch.labels is not None:
            log_p = batch.log_p.gather(-1, batch.labels.unsqueeze(-1)).squeeze(-1)
            return -batch.example_weight * self._factor(log_p) * log_p
        assert batch.probabilities is not None
        held = batch.probabilities != 0
        log_p = torch.where(held, batch.log_p, 0)
        mass = batch.probabilities if batch.weight is None else batch.probabilities * batch.weight
        return -(mass * self._factor(log_p) * log_p).sum(-1)

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(gamma, slope, 1 if the factor is a constant)."""
        return Rule("focal", (self.gamma, self.slope, float(self.detach)))

    def _factor(self, log_p: Tensor) -> Tensor:
        if self.detach:
            log_p = log_p.detach()
        if isinstance(self.slope, float) and self.slope == -1:
            base = -torch.expm1(log_p)  # 1 - p, exact where p is almost 1
        else:
            base = 1 + self.slope * log_p.exp()
        if isinstance(self.gamma, Tensor):
            # Where p is 1 the factor is 0 (or 1 for gamma = 0), but the slope of a power there may be infinite.
            safe = base.clamp_min(torch.finfo(base.dtype).tiny)
            return torch.where(base > 0, safe**self.gamma, torch.where(self.gamma == 0, 1.0, 0.0))
        if self.gamma == 0:
            return torch.ones_like(base)
        safe = base.clamp_min(torch.finfo(base.dtype).tiny)
        return torch.where(base > 0, safe**self.gamma, 0.0)

    def _options(self) -> list[tuple[str, Any]]:
        return [("gamma", self.gamma), ("detach", self.detach)]
