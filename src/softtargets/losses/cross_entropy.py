"""Plain cross-entropy, for comparison with everything else."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch, check
from softtargets.losses.fusing import Rule, is_small


class CrossEntropy(SoftTargetLoss):
    r"""Hard targets: :math:`-\log p_y`, with a = 0.

    The same as ``torch.nn.CrossEntropyLoss``, behind the interface of the other losses. Of small batches on a GPU it is
    computed by torch itself, whose way from Python to its kernels is the shortest; there a label that is no class
    ends in torch's assertion on the device, instead of NaN.

    >>> import torch
    >>> CrossEntropy()(torch.zeros(2, 4), torch.tensor([0, 3]))
    tensor(1.3863)
    """

    def __init__(
        self,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)

    def forward(self, logits: Tensor, target: Tensor, given: Any = None) -> Tensor:
        """The loss of a batch; shapes as in ``torch.nn.functional.cross_entropy``."""
        if not (is_small(logits) and (target.dtype == torch.long or target.dtype.is_floating_point)):
            return super().forward(logits, target)
        weight = self.weight if self.weight is None else self.weight.to(logits.dtype)
        try:
            return F.cross_entropy(
                logits, target, weight, ignore_index=self.ignore_index, reduction=self.reduction
            )
        except (RuntimeError, ValueError, IndexError):
            check(logits, target)  # which says what is wrong with which argument
            raise

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """Label smoothing without any."""
        return Rule("mixture", (1.0, 0.0))
