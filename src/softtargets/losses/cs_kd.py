"""Class-wise self-knowledge distillation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import divergence, softened


class CSKD(SoftTargetLoss):
    r"""Cross-entropy, and agreement with the model's prediction for another example of the same class.

    .. math:: -\log p_y + \lambda T^2\, KL(\mathrm{softmax}(z' / T) \| \mathrm{softmax}(z / T))

    Yun et al., "Regularizing class-wise predictions via self-knowledge distillation", 2020, equation 2. z' are the
    logits of a partner of the same class, through which no gradient flows. T = 4 and lambda (``strength``) = 1 are
    their choices for CIFAR-100 and Tiny ImageNet; for the fine-grained datasets they take lambda = 3.

    ``partner_logits`` are z', in the shape of the logits. The released code draws partners from the whole training
    set (`same_class_partners`) and gives them a second forward pass, without gradient but in training mode. Without
    ``partner_logits`` each example's partner is the next example of the same label in the batch, and the partner of
    the last is the first. An example that is alone is its own partner and adds nothing. Ignored rows are never
    partners.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    >>> CSKD()(logits, torch.tensor([0, 0, 1]))  # the first two are partners of each other
    tensor(1.5738)
    """

    shown = ("temperature", "strength")

    temperature: float | Tensor
    strength: float | Tensor

    def __init__(
        self,
        temperature: float | Tensor = 4.0,
        strength: float | Tensor = 1.0,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self._hyperparameter("temperature", temperature, 0, open_low=True)
        self._hyperparameter("strength", strength, 0)

    def forward(self, input: Tensor, target: Tensor, partner_logits: Tensor | None = None) -> Tensor:
        """The loss of a batch; the partners' logits have the shape of the logits."""
        return super().forward(input, target, partner_logits)

    def extra(self, batch: Batch, given: Any) -> Tensor | None:
        """Paid for saying something else than the partner."""
        if isinstance(self.strength, float) and self.strength == 0:
            return None  # classes that only one of the two excludes would make it 0 * inf
        logits = batch.logits
        partners = logits[_next_of_class(batch)] if given is None else batch.rows(given, "partner_logits")
        taught = softened(partners.detach(), self.temperature)
        return self.strength * self.temperature**2 * divergence(taught, softened(logits, self.temperature))


def same_class_partners(labels: Tensor, pool_labels: Tensor, generator: torch.Generator) -> Tensor:
    """For each label the index of a random example of the pool that has it, each equally likely.

    An example may draw itself, as in the released sampler of CS-KD. That every label occurs in the pool is checked
    on the CPU only; on a GPU looking would make the host wait.

    >>> pool_labels = torch.tensor([2, 0, 2, 1])
    >>> partners = same_class_partners(torch.tensor([2, 1, 2]), pool_labels, torch.Generator().manual_seed(0))
    >>> pool_labels[partners]
    tensor([2, 1, 2])
    """
    by_label, order = torch.sort(pool_labels, stable=True)
    first = torch.searchsorted(by_label, labels)
    found = torch.searchsorted(by_label, labels, right=True) - first
    if labels.device.type == "cpu" and bool((found == 0).any()):
        missing = labels[found == 0][0]
        raise ValueError(f"labels has {int(missing)}, but pool_labels has no example of that class")
    # Double precision keeps the product below the number of examples.
    draws = torch.rand(len(labels), generator=generator, dtype=torch.float64, device=generator.device)
    return order[first + (draws.to(labels.device) * found).long()]


def _next_of_class(batch: Batch) -> Tensor:
    """For each row the next row of the same label, cyclically: (N,); without looking at a number."""
    if batch.labels is None:
        raise ValueError(
            "target has probabilities, so partners of the same class cannot be found in the batch: give "
            "partner_logits, or class indices"
        )
    assert batch.kept is not None
    # Ignored rows are a class of their own.
    by_label, order = torch.sort(batch.labels.masked_fill(~batch.kept, batch.classes), stable=True)
    first = torch.searchsorted(by_label, by_label)
    after = torch.searchsorted(by_label, by_label, right=True)
    following = torch.arange(len(order), device=order.device) + 1
    partner = order[torch.where(following < after, following, first)]
    return torch.empty_like(order).scatter(0, order, partner)
