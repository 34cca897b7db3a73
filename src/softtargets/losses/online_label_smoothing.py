"""Online label smoothing."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses.arguments import choice, hyperparameter, whole_number
from softtargets.losses.base import RuleLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import without_autocast
from softtargets.losses.rule import Rule

_STEPS = 2.0**40


class OnlineLabelSmoothing(RuleLoss):
    r"""Cross-entropy with :math:`(1-\alpha)\,\mathrm{onehot}(y) + \alpha S_y`, where S is learnt from the model itself.

    Zhang et al., "Delving deep into label smoothing", 2021. Row k of the table S is the model's average prediction
    for the training examples of class k that it classified correctly in the epoch before. At first, and for a class
    without any correct example, the row is uniform. alpha = 0.5 is theirs for CIFAR.

    ``start="zeros"`` does as the released code: rows are zero instead of uniform, in the first epoch and for a class
    without any correct example, so that their loss is (1 - alpha) of the cross-entropy.

    ``freeze`` stops changing a row once its largest entry has reached that value. The released code does so at 0.88
    for fine-grained datasets, and not for CIFAR (the default, None). There it also weighs both parts of the loss by
    1, which is alpha = 0.5 at twice the learning rate.

    Calls in training mode collect predictions; `end_epoch` makes the next table from them, over all processes if
    there are several. Examples whose prediction is NaN are not counted. For a target of probabilities the soft part
    is the average over its labels, and an example counts as one of the most probable class.

    >>> import torch
    >>> loss = OnlineLabelSmoothing(classes=3)
    >>> logits, labels = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([0])
    >>> loss(logits, labels)
    tensor(0.9076)
    >>> loss.end_epoch()
    >>> loss.table[0]
    tensor([0.6652, 0.2447, 0.0900])
    >>> loss(logits, labels)
    tensor(0.6200)
    """

    shares_state = True
    shown = ("classes", "alpha")
    usual: ClassVar = {"freeze": None, "start": "uniform"}

    alpha: float | Tensor
    table: Tensor
    sums: Tensor
    counts: Tensor

    def __init__(
        self,
        classes: int,
        alpha: float | Tensor = 0.5,
        freeze: float | None = None,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        start: Literal["uniform", "zeros"] = "uniform",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self.classes = whole_number("classes", classes, 1)
        self._hyperparameter("alpha", alpha, 0, 1)
        self.freeze = None if freeze is None else hyperparameter("freeze", freeze, 0, 1, open_low=True)
        self.start = choice("start", start, ("uniform", "zeros"))
        self.begin()

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """The first table, and nothing collected."""
        size = self.classes, self.classes
        return {
            "table": torch.full(size, self._unknown, device=device),
            "sums": torch.zeros(size, device=device),
            "counts": torch.zeros(self.classes, device=device),
        }

    @property
    def _unknown(self) -> float:
        """What stands in a row of which nothing is known."""
        return 1 / self.classes if self.start == "uniform" else 0.0

    def forward(self, input: Tensor, target: Tensor, given: Any = None) -> Tensor:
        """The loss of a batch; in training mode what the model says is added up."""
        loss = super().forward(input, target, given)
        if self.learns:
            # Here and not where the target is made: a fused kernel would make it by itself.
            self._collect(Batch(input.detach(), target, None, self.ignore_index))
        return loss

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(hard mass, soft mass), and the table that q is read from."""
        batch.check_classes("the table", self.table)
        return Rule("mixture", (1 - self.alpha, self.alpha), self.table)

    @torch.no_grad()
    def end_epoch(self) -> None:
        """Make the table of what was collected, and begin to collect anew."""
        collected = self._over_processes(sums=self.sums, counts=self.counts)
        seen = collected["counts"].unsqueeze(-1)
        rows = torch.where(seen > 0, collected["sums"] / seen.clamp_min(1), self._unknown)
        if self.freeze is not None:
            rows = torch.where(self.table.amax(-1, keepdim=True) >= self.freeze, self.table, rows)
        self.table.copy_(rows)
        self.sums.zero_()
        self.counts.zero_()

    @torch.no_grad()
    def _collect(self, batch: Batch) -> None:
        batch.check_classes("the table", self.table)
        labels = batch.likeliest
        said = F.softmax(batch.logits, dim=-1)
        known = (
            said[:, 0] == said[:, 0]
        )  # a number, and so is all the row: or it would stay in the sums for ever
        correct = (batch.logits.argmax(-1) == labels) & known
        if batch.kept is not None:
            correct = correct & batch.kept
        # A product with one row of zeros and ones per class, in steps of 2^-40: sums of these are exact in double
        # precision, so it does not matter in which order a GPU adds. Autocast would take it in half precision.
        members = labels == torch.arange(self.classes, device=labels.device).unsqueeze(-1)
        chosen = (members & correct).double()
        steps = (said.masked_fill(~known.unsqueeze(-1), 0).double() * _STEPS).round()
        with without_autocast(labels.device):
            said_of_class = chosen @ steps / _STEPS
        seen = chosen.sum(-1)
        if self.whole is not None:
            both = self.whole.added_up(torch.cat((said_of_class.flatten(), seen)))
            said_of_class, seen = both[: -len(seen)].view_as(said_of_class), both[-len(seen) :]
        self.sums.add_(said_of_class.to(self.sums.dtype))
        self.counts.add_(seen.to(self.counts.dtype))
