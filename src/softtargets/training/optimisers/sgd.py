"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.recipes import SGD
from softtargets.training.optimisers.update import Memory, Tensors, Update, agreed, along, plus


class SGDUpdate(Update):
    r"""What ``torch.optim.SGD`` computes, with momentum :math:`\mu` and dampening :math:`\tau`.

    .. math:: b_0 = g_0, \quad b_t = \mu b_{t-1} + (1 - \tau) g_t, \quad w \leftarrow w - \eta_t b_t

    and with Nesterov's look-ahead :math:`w \leftarrow w - \eta_t (g_t + \mu b_t)`.
    """

    def _read(self, recipes: Sequence[SGD]) -> None:
        self._nesterov: bool = agreed(recipes, "nesterov")
        self._momentum = self._number([recipe.momentum for recipe in recipes])
        self.slots = ("momentum",) if any(recipe.momentum for recipe in recipes) else ()
        # A run without momentum, alone, has no buffer that could be dampened.
        taken = [1 - recipe.dampening if recipe.momentum else 1.0 for recipe in recipes]
        self._is_dampened = any(share != 1 for share in taken)
        self._taken = torch.tensor(taken, dtype=self.dtype, device=self._device)
        self._all = torch.ones_like(self._taken)

    @torch.no_grad()
    def apply_(
        self, parameters: Tensors, gradients: Tensors, state: Memory, rate: Tensor, step: Tensor
    ) -> None:
        """Move the parameters and the momentum by one step."""
        rate = rate.to(self.dtype)
        # The buffer begins with the whole first gradient; it is zero before, so momentum does not matter then.
        taken = torch.where(step == 0, self._all, self._taken) if self._is_dampened else None
        for index, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            change = self._with_decay(index, parameter, gradient)
            if self.slots:
                buffer = state["momentum"][index]
                buffer.mul_(along(self._momentum, buffer, self.lead))
                if taken is None:
                    buffer.add_(change)
                else:
                    buffer.addcmul_(change, along(taken, buffer, self.lead))
                change = plus(change, self._momentum, buffer, self.lead) if self._nesterov else buffer
            parameter.addcmul_(change, self._rate_of(index, rate, parameter), value=-1)
