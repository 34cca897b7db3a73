r"""What a probability of exactly 0 counts as, where its logarithm is asked for.

A forest of 100 trees says 0 where no tree votes for a class: it means "less than one in a hundred", not "never". If 0
counted as the smallest number of its precision, a handful of labels with probability 0 would cost a hundred nats each
and decide every temperature. So 0 counts as often as it was wrong: of Z probabilities of exactly 0, m belonged to the
label, and

.. math:: \text{floor} = \min\Big( \frac{m + 1/2}{Z + 1}, \; \frac{\text{smallest positive probability}}{2} \Big).

The first is the estimate of Krichevsky & Trofimov 1981 (Jeffreys' prior) of how often a class with probability 0 is the
label; it is close to the floor with the best likelihood. The second keeps a zero below all that is not zero, unless
that is the smallest number there is. One number for a whole file: what it owes to any one example is about 1/Z.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.scores import as_scores


@dataclass
class ZeroCounts:
    """Probabilities of exactly 0, added up over examples; `labelled` are those of labels."""

    zeros: int = 0
    labelled: int = 0
    smallest: float = 1.0  # of all that are positive

    def add(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add rows (n, K), which have been checked, and their labels (n,)."""
        if (zeros := int((probabilities == 0).sum())) > 0:
            self.zeros += zeros
            self.labelled += int((probabilities.gather(1, labels.unsqueeze(1)) == 0).sum())
            probabilities = torch.where(probabilities == 0, 1.0, probabilities)
        self.smallest = min(self.smallest, float(probabilities.min()))

    @property
    def floor(self) -> float | None:
        """What 0 counts as; None if there is none."""
        if not self.zeros:
            return None
        # Half of the smallest number of double precision is 0: naive Bayes gives such probabilities.
        below = max(self.smallest / 2, math.ulp(0.0))
        return min((self.labelled + 0.5) / (self.zeros + 1), below)


def zero_floor(
    probabilities: ArrayLike, labels: ArrayLike, *, ignore_index: int | None = None
) -> float | None:
    """What a probability of exactly 0 among these (..., K) should count as, by their labels (...); None without
    zeros.

    Pass it to `logits_from_probabilities`. See the module for the formula and its reason.

    >>> votes = torch.tensor([[0.9, 0.1, 0.0]] * 99 + [[0.0, 0.1, 0.9]])
    >>> print(f"{zero_floor(votes, torch.tensor([0] * 100)):.4f}")  # 100 zeros, 1 of them the label: 1.5 / 101
    0.0149
    """
    counts = ZeroCounts()
    rows = as_scores(probabilities, labels, from_logits=False, ignore_index=ignore_index)
    for start in rows.starts:
        counts.add(*rows.checked_piece(start))
    return counts.floor
