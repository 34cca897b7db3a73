"""Gradients no longer than a limit."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.training.optimisers.per_run import along, flat


@torch.no_grad()
def clip_by_norm_(gradients: Sequence[Tensor], limit: float | Tensor, lead: int) -> Tensor:
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
    parts = [torch.linalg.vector_norm(flat(gradient, lead), dim=-1) for gradient in gradients]
    norms: Tensor = torch.linalg.vector_norm(torch.stack(parts), dim=0)
    share = (limit / (norms + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(along(share, gradient, lead))
    return norms
