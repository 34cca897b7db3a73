"""Which labels are most likely wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.sample import as_sample


@dataclass(frozen=True, eq=False)
class SuspiciousExamples:
    """Examples from the most to the least suspicious, each array (n,).

    `index` is the place of an example, `given` its label, `likely` the likeliest other one, and `score` from 0 to 1 says
    how suspicious the label is.
    """

    index: NDArray[np.int64]
    given: NDArray[np.int64]
    likely: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.index)


def suspicious_examples(
    labels: ArrayLike, probabilities: ArrayLike, *, most: int | None = None
) -> SuspiciousExamples:
    """Rank labels (N,) by how likely they are wrong, by out-of-fold probabilities (N, K); `most` of them."""
    data, _ = calibrated(as_sample(labels, probabilities))
    own = data.probabilities.gather(1, data.labels[:, None])[:, 0]
    others = data.probabilities.scatter(1, data.labels[:, None], -1.0)
    second, likely = others.max(1)
    score = (1 + second - own) / 2
    order = torch.argsort(score, descending=True, stable=True)[:most]
    return SuspiciousExamples(
        order.numpy(), data.labels[order].numpy(), likely[order].numpy(), score[order].numpy()
    )
