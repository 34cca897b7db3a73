"""Max suppression."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch


class MaxSup(SoftTargetLoss):
    r"""Cross-entropy that penalises the largest logit: :math:`-\log p_y + \alpha (\max_k z_k - \bar z)`.

    Zhou et al., "MaxSup: overcoming representation collapse in label smoothing", 2025. Uniform label smoothing is
    cross-entropy plus :math:`\alpha (z_y - \bar z)`, which also pulls down the logit of a label that the model got
    wrong; here the largest logit takes its place. Where the label has the largest logit both are the same. The
    released code lets alpha grow linearly from 0.1 to 0.2 during the training; the default of 0.1 is where it
    starts, and stays.

    >>> import torch
    >>> MaxSup(alpha=0.1)(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))  # label smoothing, as the label leads
    tensor(0.3729)
    """

    shown = ("alpha",)

    alpha: float | Tensor

    def __init__(
        self,
        alpha: float | Tensor = 0.1,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self._hyperparameter("alpha", alpha, 0)

    def extra(self, batch: Batch, given: Any) -> Tensor | None:
        """Paid for one logit above the others, the label's or not."""
        if isinstance(self.alpha, float) and self.alpha == 0:
            return None  # a logit of minus infinity would make it 0 * inf
        return self.alpha * (batch.logits.amax(-1) - batch.logits.mean(-1))
