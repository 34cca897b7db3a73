"""Sums over what each run of a stack has: in an order that does not depend on how many runs there are."""

from __future__ import annotations

import torch
from torch import Tensor


def run_sums(values: Tensor, squared: bool = False) -> Tensor:
    """Of (runs, count), or of its squares: (runs,).

    On a GPU torch cuts up a sum by how many there are of it; on a CPU by how long it is.

    >>> run_sums(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), squared=True)
    tensor([ 5., 25.])
    """
    if values.is_cuda:
        from softtargets.models.kernels import sums  # Triton, which not every machine has

        found: Tensor = sums(values, squared)
        return found
    return (values.square() if squared else values).sum(-1)


def run_norms(values: Tensor) -> Tensor:
    """Euclidean norms of (runs, count), or of the numbers of one net, (count,)."""
    if values.is_cuda and values.dim() == 2:
        return run_sums(values, squared=True).sqrt()
    # Not -1: torch 2.9 gives the compiler a wrong shape then, where there is one number.
    norms: Tensor = torch.linalg.vector_norm(values, dim=values.dim() - 1)
    return norms
