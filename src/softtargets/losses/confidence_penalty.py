"""The confidence penalty."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softtargets.losses.base import RuleLoss
from softtargets.losses.batch import Batch
from softtargets.losses.rule import Rule


class ConfidencePenalty(RuleLoss):
    r"""Cross-entropy minus the entropy of the prediction: :math:`-\log p_y - \beta H(p)`.

    Hard targets (a = 0) and one extra term. Pereyra et al., "Regularizing neural networks by penalizing confident
    output distributions", 2017. The paper tunes beta for each task; the default of 0.1 is ours, a mild value. The
    loss can be negative.

    >>> import torch
    >>> ConfidencePenalty(beta=0.1)(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.2477)
    """

    shown = ("beta",)

    beta: float | Tensor

    def __init__(
        self,
        beta: float | Tensor = 0.1,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)
        self._hyperparameter("beta", beta, 0)

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(beta)."""
        return Rule("penalty", (self.beta,))
