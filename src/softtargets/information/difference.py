"""The logit of one class minus that of another: one number for each example."""

from __future__ import annotations

import operator

from torch import Tensor

from softtargets.arrays import ArrayLike, as_logits


def logit_difference(logits: ArrayLike, first: int, second: int) -> Tensor:
    """The logit of one class minus that of another, (N,) from logits (N, K).

    Müller et al. 2019, section 4: the Y of their mutual information. Examples are those of the two classes; stack
    the differences of several augmentations along dimension 1 for `example_information`.

    >>> import torch
    >>> logit_difference(torch.tensor([[3.0, 1.0, 0.0], [0.5, 2.0, 9.0]]), first=0, second=1)
    tensor([ 2.0000, -1.5000])
    """
    found = as_logits(logits)
    chosen = [operator.index(first), operator.index(second)]
    if chosen[0] == chosen[1] or not all(0 <= c < found.shape[1] for c in chosen):
        raise ValueError(f"need two different classes from 0 to {found.shape[1] - 1}, not {chosen}")
    return found[:, chosen[0]] - found[:, chosen[1]]
