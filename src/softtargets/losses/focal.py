"""Focal loss."""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor

from softtargets.losses.base import RuleLoss
from softtargets.losses.batch import Batch
from softtargets.losses.rule import Rule


class FocalLoss(RuleLoss):
    r"""Cross-entropy that fades for examples already learnt: :math:`-(1 - p_y)^\gamma \log p_y`.

    Lin et al., "Focal loss for dense object detection", 2017, equation 4; gamma = 2 worked best there. The factor
    is part of the loss, so gradients flow through it; ``detach=True`` treats it as a constant weight instead, as the
    translation experiments of Raunak et al. 2020 do. gamma = 0 is cross-entropy. For a target of
    probabilities every class contributes its own term, :math:`-\sum_k t_k (1 - p_k)^\gamma \log p_k`.

    >>> import torch
    >>> FocalLoss(gamma=2.0)(torch.zeros(1, 2), torch.tensor([0]))
    tensor(0.1733)
    """

    shown: ClassVar[tuple[str, ...]] = ("gamma", "detach")

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
        self._hyperparameter("gamma", gamma, 0)
        self.detach = bool(detach)

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(gamma, slope, 1 if the factor is a constant)."""
        return Rule("focal", (self.gamma, self.slope, float(self.detach)))
