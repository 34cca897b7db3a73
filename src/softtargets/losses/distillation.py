"""Knowledge distillation."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from softtargets.losses.arguments import choice
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import blend, soft_cross_entropy, softened, wide
from softtargets.losses.rule import Rule


class TopLogits(NamedTuple):
    """A teacher's k largest logits of every example and the classes they belong to, both (N, k) or (N, k, d1, ...).

    Storing these instead of all K logits is what makes a stored teacher affordable for large vocabularies.
    The target is the softmax over the k stored ones.
    """

    values: Tensor
    classes: Tensor


def top_logits(teacher_logits: Tensor, k: int) -> TopLogits:
    """The k largest logits along the class dimension, ready to be stored.

    >>> top_logits(torch.tensor([[0.1, 3.0, 2.0]]), k=2).classes
    tensor([[1, 2]])
    """
    found = teacher_logits.topk(k, dim=1 if teacher_logits.dim() > 1 else 0)
    return TopLogits(found.values, found.indices)


class Distillation(SoftTargetLoss):
    r"""Cross-entropy with the target :math:`(1-\beta)\,\mathrm{onehot}(y) + \beta\, p^t(T)`, q from a teacher.

    .. math:: (1 - \beta) H(y, p) + \beta H(p^t(T), p(T'))

    Hinton, Vinyals and Dean 2015; Müller et al. 2019, section 4. The student's temperature T' is 1 unless
    ``student_temperature=True`` makes it T: with beta = 1 it only rescales logits that are learnt anyway (Müller
    et al., appendix A.1). Their CIFAR-10 experiments use beta = 1, the default here. ``scale_gradients=True``
    multiplies the soft part by T squared, which keeps its gradients of the same size when T changes (Hinton et
    al., section 2). ``match="logits"`` replaces the soft part by half the squared difference of the logits,
    :math:`\frac12 \sum_k (z_k - z^t_k)^2`, as Müller et al. do for MNIST with beta = 0.6 (appendix A.5).

    `hinton` makes the text-book loss, with the student at T and the soft part times T squared. Others write
    :math:`T^2 KL(p^t(T) \| p(T))` for that part: less by the teacher's entropy, a constant without gradient.

    The teacher's logits are stored (all of them or the `TopLogits`) or come from a live teacher (`ask`). No
    gradient reaches the teacher.

    >>> import torch
    >>> loss = Distillation(temperature=2.0)
    >>> teacher_logits = torch.tensor([[2.0, 0.0, 0.0]])
    >>> loss(torch.zeros(1, 3), torch.tensor([0]), teacher_logits)
    tensor(1.0986)
    """

    needs = "teacher_logits"
    shown = ("temperature", "beta", "student_temperature")
    usual: ClassVar = {"scale_gradients": False, "match": "probabilities"}

    temperature: float | Tensor
    beta: float | Tensor

    def __init__(
        self,
        temperature: float | Tensor = 1.0,
        beta: float | Tensor = 1.0,
        student_temperature: bool = False,
        scale_gradients: bool = False,
        match: Literal["probabilities", "logits"] = "probabilities",
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)
        self._hyperparameter("temperature", temperature, 0, open_low=True)
        self._hyperparameter("beta", beta, 0, 1)
        self.student_temperature = bool(student_temperature)
        self.scale_gradients = bool(scale_gradients)
        self.match = choice("match", match, ("probabilities", "logits"))

    @classmethod
    def hinton(
        cls, temperature: float | Tensor = 4.0, beta: float | Tensor = 0.9, **options: Any
    ) -> Distillation:
        r"""The text-book loss, :math:`(1 - \beta) H(y, p) + \beta T^2 H(p^t(T), p(T))` (Hinton et al. 2015, section 2).

        Most code for CIFAR uses T = 4 and beta = 0.9. The options are those of the class.

        >>> Distillation.hinton(2.0)
        Distillation(temperature=2.0, beta=0.9, student_temperature=True, scale_gradients=True)
        """
        return cls(temperature, beta, student_temperature=True, scale_gradients=True, **options)

    def forward(
        self, input: Tensor, target: Tensor, teacher_logits: Tensor | TopLogits | None = None
    ) -> Tensor:
        """The loss of a batch; the teacher's logits have the shape of the logits, or are its `TopLogits`."""
        return super().forward(input, target, teacher_logits)

    @staticmethod
    @torch.no_grad()
    def ask(teacher: nn.Module, *inputs: Any) -> Tensor:
        """A live teacher's logits for these inputs: in evaluation mode, without gradient.

        >>> Distillation.ask(nn.Linear(2, 3), torch.zeros(1, 2)).requires_grad
        False
        """
        training = [part for part in teacher.modules() if part.training]
        try:
            logits: Tensor = teacher.eval()(*inputs)
        finally:
            for part in training:  # and no others: some may be frozen on purpose
                part.training = True
        return logits

    def per_example(self, batch: Batch, given: Any = None) -> Tensor:
        """(1 - beta) of the hard part and beta of the soft one."""
        if not isinstance(given, (Tensor, TopLogits)):
            raise TypeError(f"teacher_logits must be a tensor or TopLogits, not {type(given).__name__}")
        soft = self._squares(batch, given) if self.match == "logits" else self._soft(batch, given)
        return blend(self.beta, batch.hard(), soft)

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(hard mass, soft mass, 1 / T, 1 / T') or (hard mass, weight of the squares)."""
        if not isinstance(given, Tensor) or batch.raw.shape != given.shape or self.weight is not None:
            return None
        if self.match == "logits":
            return Rule("matching", (1 - self.beta, self.beta), teacher=given)
        own = 1 / self.temperature if self.student_temperature else 1.0
        soft = self.beta * self._gradient_scale()
        return Rule("distillation", (1 - self.beta, soft, 1 / self.temperature, own), teacher=given)

    def _gradient_scale(self) -> float | Tensor:
        return self.temperature**2 if self.scale_gradients else 1.0

    def _soft(self, batch: Batch, given: Any) -> Tensor:
        log_p = softened(batch.logits, self.temperature) if self.student_temperature else batch.log_p
        if isinstance(given, TopLogits):
            values, classes = _top_rows(batch, given)
            q = softened(values.detach(), self.temperature).exp()
            log_p = log_p.gather(-1, classes)
            weight = None if batch.weight is None else batch.weight[classes]
        else:
            q = softened(batch.rows(given, "teacher_logits").detach(), self.temperature).exp()
            weight = batch.weight
        return self._gradient_scale() * soft_cross_entropy(log_p, q if weight is None else q * weight)

    def _squares(self, batch: Batch, given: Any) -> Tensor:
        if isinstance(given, TopLogits):
            values, classes = _top_rows(batch, given)
            difference = batch.logits.gather(-1, classes) - values.detach()
        else:
            difference = batch.logits - batch.rows(given, "teacher_logits").detach()
        return batch.example_weight * 0.5 * difference.square().sum(-1)


def _top_rows(batch: Batch, top: TopLogits) -> tuple[Tensor, Tensor]:
    """The stored logits and their classes as (N, k)."""
    dimension = batch.class_dimension
    for name, value in (("values", top.values), ("classes", top.classes)):
        expected = list(batch.raw.shape)
        if value.dim() == len(expected):
            expected[dimension] = value.shape[dimension]
        if list(value.shape) != expected or value.shape != top.values.shape:
            raise ValueError(
                f"teacher_logits.{name} must have the shape of the logits, {tuple(batch.raw.shape)}, but k instead "
                f"of {batch.classes} classes; its shape is {tuple(value.shape)}"
            )
    k = top.values.shape[dimension]
    values = wide(top.values.movedim(dimension, -1).reshape(-1, k)).to(batch.logits.dtype)
    return values, top.classes.movedim(dimension, -1).reshape(-1, k).long()
