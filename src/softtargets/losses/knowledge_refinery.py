"""Knowledge refinery."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.arguments import whole_number
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import divergence, without_autocast


class KnowledgeRefinery(SoftTargetLoss):
    r"""Cross-entropy, plus agreement about the wrong classes with a table that is learnt during training.

    .. math:: -\log p_y + \alpha\, KL(p^{res} \| q^{res})

    Ding et al., "Knowledge refinery: learning from decoupled label", 2021, Algorithm 1. Both distributions are over
    the K-1 classes that are not the label: :math:`p^{res}` is the softmax of the logits without the label's,
    :math:`q^{res}` that of row y of the table S, likewise without the label's entry and without gradient. S starts at
    zero. Every call in training mode moves it by a gradient step of its own, on
    :math:`\alpha KL(q^{res} \| p^{res})` with the model held fixed:

    .. math:: S_{yj} \leftarrow S_{yj} - \eta \alpha\, q_j \left(\log q_j - \log p_j - KL(q^{res} \| p^{res})\right)

    averaged over the examples that count, whatever ``reduction`` says. An example whose prediction is NaN, or gives
    a class probability 0, moves nothing. If there are several processes, each moves its own table by its own
    examples, and `end_epoch` averages the tables. With two classes only one class is left, so the divergence is 0
    and the loss is cross-entropy. For a target of probabilities the most probable class is the one left out.

    The paper gives both the model and S the same learning rate; here S has its own, constant (``table_lr``). We have
    found neither alpha for CIFAR nor whether S has momentum or weight decay: alpha = 1, a rate of 0.1 (the first
    rate of the usual CIFAR schedules) and plain gradient descent are ours.

    >>> import torch
    >>> loss = KnowledgeRefinery(classes=3)
    >>> logits, labels = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0])
    >>> loss(logits, labels)
    tensor(0.5186)
    >>> loss.table[0]
    tensor([ 0.0000,  0.0250, -0.0250])
    """

    shares_state = True
    shown = ("classes", "alpha", "table_lr")

    alpha: float | Tensor
    table_lr: float | Tensor
    table: Tensor

    def __init__(
        self,
        classes: int,
        alpha: float | Tensor = 1.0,
        table_lr: float | Tensor = 0.1,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self.classes = whole_number("classes", classes, 2)
        self._hyperparameter("alpha", alpha, 0)
        self._hyperparameter("table_lr", table_lr, 0)
        self.begin()

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """A table that prefers nothing."""
        return {"table": torch.zeros(self.classes, self.classes, device=device)}

    def forward(self, input: Tensor, target: Tensor, given: Any = None) -> Tensor:
        """The loss of a batch; in training mode the table takes a step."""
        loss = super().forward(input, target, given)
        if self.learns:
            self._learn(Batch(input.detach(), target, self.weight, self.ignore_index))
        return loss

    def extra(self, batch: Batch, given: Any) -> Tensor:
        """Paid for ranking the wrong classes otherwise than the table."""
        log_p, log_q = self._residuals(batch)
        return self.alpha * divergence(log_p, log_q)

    def _residuals(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the model and the table say of the other classes, as logarithms; minus infinity for the label."""
        batch.check_classes("the table", self.table)
        labels = batch.likeliest
        label = labels.unsqueeze(-1)
        row = self.table.to(batch.logits.dtype)[labels]
        log_p = F.log_softmax(batch.logits.scatter(-1, label, -math.inf), dim=-1)
        log_q = F.log_softmax(row.scatter(-1, label, -math.inf), dim=-1)
        return log_p, log_q

    @torch.no_grad()
    def end_epoch(self) -> None:
        """Where there are several processes: the mean of their tables."""
        everyones = self._over_processes(table=self.table, processes=self.table.new_ones(1))
        self.table.copy_(everyones["table"] / everyones["processes"])

    @torch.no_grad()
    def _learn(self, batch: Batch) -> None:
        log_p, log_q = self._residuals(batch)
        difference = (log_q - log_p).masked_fill(log_q == -math.inf, 0)
        slope = log_q.exp() * (difference - divergence(log_q, log_p).unsqueeze(-1))
        members = batch.likeliest == torch.arange(self.classes, device=slope.device).unsqueeze(-1)
        counts = slope.isfinite().all(-1)  # what is no number would stay in the table for ever
        if batch.kept is not None:
            counts = counts & batch.kept
        members = members & counts
        slope = slope.masked_fill(~counts.unsqueeze(-1), 0)
        shares = members.to(self.table.dtype) * batch.example_weight
        total = shares.sum()
        # A product instead of index_add_, whose order of addition varies on a GPU; in full precision under autocast.
        with without_autocast(slope.device):
            step = shares.to(self.table.dtype) @ slope.to(self.table.dtype)
        if self.whole is not None:
            both = self.whole.added_up(torch.cat((step.flatten(), total.to(step.dtype).view(1))))
            step, total = both[:-1].view_as(step), both[-1]
        # A batch in which nothing counts leaves the table alone.
        step = torch.where(total == 0, 0, step / total)
        self.table.sub_((self.table_lr * self.alpha * step).to(self.table.dtype))
