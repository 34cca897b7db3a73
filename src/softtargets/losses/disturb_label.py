"""DisturbLabel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import label_cross_entropy


class DisturbLabel(SoftTargetLoss):
    r"""Cross-entropy with a random part of the labels replaced, drawn again in every call.

    Xie et al., "DisturbLabel: regularizing CNN on the loss layer", 2016. With probability alpha a label is replaced
    by one drawn uniformly from all K classes, which may be the same again:

    .. math:: P(y) = 1 - \alpha (K - 1) / K, \quad P(k) = \alpha / K

    On average the loss is that of label smoothing with the same alpha (``spread="all"``), with noise added. The
    default of 0.1 is that of the comparison in the released code of online label smoothing (Zhang et al. 2021).

    The draws come from torch's default generator of the device; ``torch.manual_seed`` fixes them. In evaluation
    mode and under ``torch.no_grad()`` nothing is replaced. If the target is probabilities, whole rows are replaced.
    Class weights are those of the labels drawn, while the mean divides by those of the labels given: so the average
    stays that of label smoothing.

    >>> import torch
    >>> logits, labels = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    >>> DisturbLabel(alpha=0.1).eval()(logits, labels)
    tensor(0.2395)
    >>> _ = torch.manual_seed(0)
    >>> DisturbLabel(alpha=0.1)(logits.expand(100_000, 3), labels.expand(100_000))  # label smoothing: 0.3729
    tensor(0.3757)
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
        self._hyperparameter("alpha", alpha, 0, 1)

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """Cross-entropy; in training mode with what was drawn."""
        if not self.learns:
            return batch.hard()
        count, device = batch.logits.shape[0], batch.logits.device
        count = count if self.whole is None else self.whole.labels
        disturbed = torch.rand(count, device=device) < self.alpha
        drawn = torch.randint(batch.classes, (count,), device=device)
        if self.whole is not None:
            disturbed, drawn = self.whole.own_labels(disturbed), self.whole.own_labels(drawn)
        if batch.labels is None:
            certain = drawn.unsqueeze(-1) == torch.arange(batch.classes, device=device)
            mass = torch.where(disturbed.unsqueeze(-1), certain.to(batch.logits.dtype), batch.probabilities)
            return batch.soft(mass)
        labels = torch.where(disturbed, drawn, batch.labels)
        losses = label_cross_entropy(batch.log_p, labels)
        return losses if batch.weight is None else batch.weight[labels] * losses
