"""How many classes are ranked above the label."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def rank_of(
    scores: Tensor, label: Tensor, score: Tensor, at_label: Tensor, tolerance: float, scratch: Tensor
) -> Tensor:
    """The rank (n,) of each label among scores (n, K): 0 for the highest, and for the first of equals.

    `label` and its `score` are (n, 1), `at_label` (n,) its probability, which is known but for a `tolerance`; `scratch`
    has the shape of the scores.
    """
    # Comparisons written as numbers are counted several times faster than truth values.
    if scores.device.type != "cpu":
        above = torch.gt(scores, score, out=scratch).sum(1)
        return (above + _equal_before(scores, label, score)).long()
    rank = torch.zeros(len(scores), dtype=torch.int64)
    # More than all others together is more than each: there is nothing to count, as in most rows of a good model.
    unclear = torch.from_numpy(np.flatnonzero(at_label.numpy() <= 0.5 + tolerance))
    if len(unclear) == 0:
        return rank
    some, of = scores.index_select(0, unclear), score.index_select(0, unclear)
    scratch = scratch[: len(some)]
    above = torch.gt(some, of, out=scratch).sum(1)
    as_high = torch.ge(some, of, out=scratch).sum(1)
    tied = (as_high > above + 1).nonzero().squeeze(1)  # than the label itself
    if len(tied):
        above[tied] += _equal_before(some[tied], label[unclear[tied]], of[tied])
    return rank.index_copy_(0, unclear, above.long())


def _equal_before(scores: Tensor, label: Tensor, score: Tensor) -> Tensor:
    places = torch.arange(scores.shape[1], device=scores.device)
    return ((scores == score) & (places < label)).sum(1)
