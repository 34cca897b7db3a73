"""Plain cross-entropy, for comparison with everything else."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.rule import Rule


class CrossEntropy(SoftTargetLoss):
    r"""Hard targets: :math:`-\log p_y`, with a = 0.

    The same as ``torch.nn.CrossEntropyLoss``, behind the interface of the other losses. On a CPU, and for small
    batches on a GPU, torch itself computes it, since torch has the least overhead; on a GPU a label that is not a
    class then ends in torch's device assertion instead of NaN.

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

    def torchs_smoothing(self) -> float | None:
        """None at all."""
        return 0.0

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """Label smoothing without any."""
        return Rule("mixture", (1.0, 0.0))
