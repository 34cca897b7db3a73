"""All that happens to weights in a step, in one go: so that on a GPU it is compiled to a few kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.training.optimisers import average_, clip_by_norm_
from softtargets.training.optimisers.update import Update


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
        parameters: Sequence[Tensor],
        gradients: Sequence[Tensor],
        memory: Mapping[str, Sequence[Tensor]],
        averages: Sequence[Tensor],
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
            average_(averages, parameters, self.average, self.lead)
        for shadow, parameter in zip(shadows, parameters, strict=True):
            if shadow is not None:
                shadow.copy_(parameter)
        return penalty
