"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.recipes import Adam, AdamW
from softtargets.training.optimisers.update import Memory, Tensors, Update, agreed, along, is_exactly


class AdamUpdate(Update):
    r"""What ``torch.optim.Adam`` computes (Kingma and Ba 2015, algorithm 1), t counted from 1.

    .. math::
        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \quad v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, \quad
        w \leftarrow w - \frac{\eta_t}{1 - \beta_1^t} \frac{m_t}{\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    Decoupled, the decay is that of AdamW: :math:`w \leftarrow (1 - \eta_t \lambda) w` first, nothing in the gradient
    (Loshchilov and Hutter 2019, algorithm 2).
    """

    slots = ("mean", "square")

    def _read(self, recipes: Sequence[Adam | AdamW]) -> None:
        self._decoupled: bool = agreed(recipes, "decoupled")
        first, second = zip(*(recipe.betas for recipe in recipes), strict=True)
        self._mean_taken = self._number([1 - beta for beta in first])
        self._square_kept = self._number(second)
        # A tensor for one net as well: `addcmul_` takes one.
        self._square_taken = torch.tensor(
            [1 - beta for beta in second], dtype=self.dtype, device=self._device
        )
        self._eps = self._number([recipe.eps for recipe in recipes])
        # 1 - beta**t in single precision would be off by 1e-5 in the first steps, where little is left of it.
        self._first = torch.tensor(first, dtype=torch.float64, device=self._device)
        self._second = torch.tensor(second, dtype=torch.float64, device=self._device)

    @torch.no_grad()
    def apply_(
        self, parameters: Tensors, gradients: Tensors, state: Memory, rate: Tensor, step: Tensor
    ) -> None:
        """Move the parameters and both averages by one step."""
        taken = step.double() + 1
        size = (rate.double() / (1 - self._first**taken)).to(self.dtype)
        root = (1 - self._second**taken).sqrt().to(self.dtype)
        rate = rate.to(self.dtype)
        for index, (parameter, gradient) in enumerate(zip(parameters, gradients, strict=True)):
            mean, square = state["mean"][index], state["square"][index]
            change = gradient if self._decoupled else self._with_decay(index, parameter, gradient)
            if self._decoupled and not is_exactly(self._decays[index], 0.0):
                decay = along(self._decays[index], parameter, self.lead)
                parameter.mul_(1 - self._rate_of(index, rate, parameter) * decay)
            mean.lerp_(change, along(self._mean_taken, mean, self.lead))
            square.mul_(along(self._square_kept, square, self.lead))
            square.addcmul_(change.square(), along(self._square_taken, square, self.lead))
            spread = square.sqrt().div_(along(root, square, self.lead))
            spread.add_(along(self._eps, spread, self.lead))
            # Not folded into the denominator, as torch does for captured steps: a rate of 0 would divide 0 by 0.
            parameter.addcmul_(mean / spread, self._rate_of(index, size, parameter), value=-1)
