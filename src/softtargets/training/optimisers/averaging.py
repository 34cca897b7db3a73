"""Averages of the weights over the steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.training.optimisers.per_run import towards_


@torch.no_grad()
def average_(
    averages: Sequence[Tensor], parameters: Sequence[Tensor], decay: float | Tensor, lead: int
) -> None:
    r"""Move exponential averages by one step: :math:`a \leftarrow d\,a + (1 - d)\,w`.

    They begin as a copy of the first weights, as in TensorFlow's ``ExponentialMovingAverage``. A stack (``lead=1``)
    may have a decay d for each run, (runs,); double precision keeps 1 - d exact.

    >>> averages = [torch.zeros(2)]
    >>> average_(averages, [torch.ones(2)], decay=0.75, lead=0)
    >>> averages
    [tensor([0.2500, 0.2500])]
    """
    taken = 1 - decay
    if isinstance(taken, Tensor):
        taken = taken.to(averages[0].dtype)
    for average, parameter in zip(averages, parameters, strict=True):
        towards_(average, parameter, taken, lead)
