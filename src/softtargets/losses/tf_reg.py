"""Teacher-free regularisation: a teacher made by hand."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor

from softtargets.losses.arguments import choice
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import label_cross_entropy, soft_cross_entropy, softened


class TFReg(SoftTargetLoss):
    r"""Distillation from a virtual teacher: :math:`(1-\alpha) H(y, p) + \alpha m\, KL(q \| p)`.

    Yuan et al., "Revisiting knowledge distillation via label smoothing regularization", 2020, section 4.2 (Tf-KD_reg).
    The virtual teacher :math:`p^d` gives the label ``correct`` and each other class (1 - correct) / (K - 1), and q is

    .. math:: q = \mathrm{softmax}(p^d / T)

    a softmax of *probabilities*, which lie between 0 and 1, so q is almost flat: with K = 100 and T = 20 the label
    has 0.0105 and every other class 0.00999. As released it therefore is uniform label smoothing. The loss has the
    gradient of cross-entropy with the target of mass h on the label and a on the uniform distribution,

    .. math:: h = (1 - \alpha) + c (v - u), \quad a = c u K

    where v and u are what q gives the label and another class, and c is :math:`\alpha m / K`. With the defaults and
    K = 100, a / (h + a) is 0.10.

    The defaults are those of the released code for ResNet-18 on CIFAR-100: alpha = 0.1, T = 20, m = 100,
    ``correct`` = 0.99, the student at temperature 1, and the divergence averaged over the B x K elements of the batch
    (``divergence="mean"``), so that every example's is divided by K. ``divergence="batchmean"`` does not divide, and
    ``student_temperature=True`` has the student at T too; both together are equation 9 of the paper. With a
    target of probabilities the divergence is averaged over the labels it holds for possible.

    >>> import torch
    >>> TFReg()(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(1.7238)
    """

    shown = ("alpha", "temperature", "multiplier", "correct", "student_temperature", "divergence")

    alpha: float | Tensor
    temperature: float | Tensor
    multiplier: float | Tensor
    correct: float | Tensor

    def __init__(
        self,
        alpha: float | Tensor = 0.1,
        temperature: float | Tensor = 20.0,
        multiplier: float | Tensor = 100.0,
        correct: float | Tensor = 0.99,
        student_temperature: bool = False,
        divergence: Literal["mean", "batchmean"] = "mean",
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self._hyperparameter("alpha", alpha, 0, 1)
        self._hyperparameter("temperature", temperature, 0, open_low=True)
        self._hyperparameter("multiplier", multiplier, 0)
        self._hyperparameter("correct", correct, 0, 1)
        self.student_temperature = bool(student_temperature)
        self.divergence = choice("divergence", divergence, ("mean", "batchmean"))

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """(1 - alpha) of the hard part, and the divergence from the virtual teacher."""
        share = self.alpha * self.multiplier
        if self.divergence == "mean":
            share = share / batch.classes
        if isinstance(share, float) and share == 0:
            return (1 - self.alpha) * batch.hard()  # a logit of minus infinity would make it 0 * inf
        return (1 - self.alpha) * batch.hard() + batch.example_weight * share * self._divergence(batch)

    def _divergence(self, batch: Batch) -> Tensor:
        """KL(q || p): q has two values only, so its N x K probabilities are never written down."""
        log_p = softened(batch.logits, self.temperature) if self.student_temperature else batch.log_p
        own, others = self._masses(batch)
        each = others / (batch.classes - 1)
        negative_entropy = torch.xlogy(own, own) + torch.xlogy(others, each)
        return negative_entropy + (own - each) * _cross_entropy(batch, log_p) - each * log_p.sum(-1)

    def _masses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the softened teacher gives the label, and all other classes together."""
        if batch.classes < 2:
            raise ValueError("TFReg needs logits of at least two classes: with one class there are no others")
        rest = (1 - self.correct) / (batch.classes - 1)
        # Odds instead of exponentials: nothing overflows, however cold the teacher.
        odds: float | Tensor = (self.correct - rest) / self.temperature - math.log(batch.classes - 1)
        if not isinstance(odds, Tensor):
            odds = batch.logits.new_full((), odds)
        odds = odds.to(batch.logits.dtype)
        return torch.sigmoid(odds), torch.sigmoid(-odds)


def _cross_entropy(batch: Batch, log_p: Tensor) -> Tensor:
    """Of the target as it was given, without class weights: the divergence is weighted as a whole."""
    if batch.labels is not None:
        return label_cross_entropy(log_p, batch.labels)
    return soft_cross_entropy(log_p, batch.probabilities)
