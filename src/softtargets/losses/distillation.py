"""Knowledge distillation."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from softtargets.losses.functional import soft_cross_entropy


class Distillation(nn.Module):
    r"""Cross-entropy with targets from a teacher at temperature T.

    .. math:: (1 - \beta) H(y, p) + \beta H(p^t(T), p(T))

    Hinton, Vinyals and Dean 2015; Müller et al. 2019, section 4. With ``student_temperature=False`` the
    student stays at temperature 1, since with beta = 1 its temperature only rescales logits that are learnt
    anyway (Müller et al., appendix A.1). Their CIFAR-10 experiments use beta = 1, the default here.

    >>> import torch
    >>> loss = Distillation(temperature=2.0)
    >>> teacher = torch.tensor([[2.0, 0.0, 0.0]])
    >>> loss(torch.zeros(1, 3), torch.tensor([0]), teacher)
    tensor(1.0986)
    """

    def __init__(
        self, temperature: float = 1.0, beta: float = 1.0, student_temperature: bool = False
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, not {temperature}")
        if not 0 <= beta <= 1:
            raise ValueError(f"beta must be between 0 and 1, not {beta}")
        self.temperature = temperature
        self.beta = beta
        self.student_temperature = student_temperature

    def forward(self, logits: Tensor, target: Tensor, teacher_logits: Tensor) -> Tensor:
        """Mean loss of a batch: logits (N, K), integer labels (N), the teacher's logits (N, K)."""
        softened = F.softmax(teacher_logits / self.temperature, dim=-1)
        own = logits / self.temperature if self.student_temperature else logits
        soft = soft_cross_entropy(own, softened).mean()
        if self.beta == 1:
            return soft
        return (1 - self.beta) * F.cross_entropy(logits, target) + self.beta * soft

    def extra_repr(self) -> str:
        """Shown by ``print(loss)``."""
        own = f"student_temperature={self.student_temperature}"
        return f"temperature={self.temperature}, beta={self.beta}, {own}"
