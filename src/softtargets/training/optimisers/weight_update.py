"""All that happens to weights in a step, in one go: so that on a GPU it is compiled to a few kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.training.optimisers.update import Memory, Tensors, Update, along, flat
from softtargets.training.sums import run_norms


@dataclass(frozen=True)
class WeightUpdate:
    """Penalty, clipping, update and averages, in this order; `clip` and `average` are a recipe's."""

    update: Update
    clip: float | None
    average: float | None
    lead: int

    @torch.no_grad()
    def __call__(
        self,
        parameters: Tensors,
        gradients: Tensors,
        memory: Memory,
        averages: Tensors,
        shadows: Sequence[Tensor | None],
        rate: Tensor,
        step: Tensor,
    ) -> Tensor | None:
        """Change the weights and all that follows them; returns the part of the loss that is a penalty on them."""
        # Those by shadows are in lower precision.
        gradients = [
            gradient.to(parameter.dtype) for gradient, parameter in zip(gradients, parameters, strict=True)
        ]
        penalty = self.update.penalty_(parameters, gradients)
        if self.clip is not None:
            clip_by_norm_(gradients, self.clip, self.lead)
        self.update.apply_(parameters, gradients, memory, rate, step)
        if self.average is not None:
            average_(averages, parameters, self.average)
        for shadow, parameter in zip(shadows, parameters, strict=True):
            if shadow is not None:
                shadow.copy_(parameter)
        return penalty


@torch.no_grad()
def clip_by_norm_(gradients: Tensors, limit: float | Tensor, lead: int) -> Tensor:
    r"""Multiply gradients by :math:`\min(1, \mathrm{limit} / (\lVert g \rVert + 10^{-6}))` in place; return the norms.

    The norm goes over all parameters of a run together, as in ``torch.nn.utils.clip_grad_norm_``. A stack
    (``lead=1``) has a norm for each run, (runs,), and may have a limit for each; infinity leaves a run as it is.

    >>> gradients = [torch.tensor([[3.0], [0.3]]), torch.tensor([[4.0], [0.4]])]  # two runs, two parameters
    >>> clip_by_norm_(gradients, limit=1.0, lead=1)
    tensor([5.0000, 0.5000])
    >>> torch.cat(gradients, dim=1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    parts = [run_norms(flat(gradient, lead)) for gradient in gradients]
    norms = _together(parts)
    share = _apart((limit / (norms + 1e-6)).clamp(max=1.0))
    for gradient in gradients:
        gradient.mul_(along(share, gradient, lead))
    return norms


def _together(parts: Sequence[Tensor]) -> Tensor:
    """The norm of all parameters of each run, from those of each parameter: in one order, however many runs there are.

    What torch and its compiler make of a sum over the first dimension depends on how long the others are. On a CPU the
    last one is summed up, for each run as for a run alone; on a GPU numbers are added one after another, which is what
    its compiler makes of a few.
    """
    if not (parts[0].is_cuda and parts[0].dim()):
        return run_norms(torch.stack(list(parts), dim=parts[0].dim()))
    total = parts[0].square()
    for part in parts[1:]:
        total = total + part.square()
    return total.sqrt()


def _apart(shares: Tensor) -> Tensor:
    """The shares of a stack on a GPU are computed by themselves: an update is rounded alike whatever the company."""
    if not (shares.is_cuda and shares.dim()):
        return shares
    from softtargets.models.kernels import apart  # Triton, which not every machine has

    found: Tensor = apart(shares)
    return found


@torch.no_grad()
def average_(averages: Tensors, parameters: Tensors, decay: float) -> None:
    r"""Move exponential averages by one step: :math:`a \leftarrow d\,a + (1 - d)\,w`.

    They begin as a copy of the first weights, as in TensorFlow's ``ExponentialMovingAverage``.

    >>> averages = [torch.zeros(2)]
    >>> average_(averages, [torch.ones(2)], decay=0.75)
    >>> averages
    [tensor([0.2500, 0.2500])]
    """
    for average, parameter in zip(averages, parameters, strict=True):
        average.lerp_(parameter, 1 - decay)
