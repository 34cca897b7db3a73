"""Which labels are most likely wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike
from softtargets.noise.estimation.anchors import find_anchors
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.sample import as_sample

COUNTED = 0.5  # what is added to every count of anchors (Jeffreys), so that no label is impossible
TRUST = 0.5  # the power of T: between 0, where every wrong label is as likely, and 1, where T is exact


@dataclass(frozen=True, eq=False)
class SuspiciousExamples:
    """Examples from the most to the least suspicious, each array (n,).

    `index` is the place of an example, `given` its label, `likely` the likeliest other class, and `score`, from 0 to 1,
    how suspicious the label is. Scores put examples into an order; they are no probabilities that can be added up to a
    number of errors, for which there is `assess_noise`.
    """

    index: NDArray[np.int64]
    given: NDArray[np.int64]
    likely: NDArray[np.int64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.index)

    def rows(self) -> list[dict[str, int | float]]:
        """One dictionary for each example, for a table: rank (from 1), index, given, likely, score."""
        columns = zip(self.index, self.given, self.likely, self.score, strict=True)
        return [
            {
                "rank": rank,
                "index": int(index),
                "given": int(given),
                "likely": int(likely),
                "score": float(score),
            }
            for rank, (index, given, likely, score) in enumerate(columns, 1)
        ]


def suspicious_examples(
    labels: ArrayLike, probabilities: ArrayLike, *, most: int | None = None
) -> SuspiciousExamples:
    r"""Rank labels (N,) by how suspicious they are to out-of-fold probabilities (N, K); all of them, or at most `most`.

    .. math:: w_i = p_i \, T_{i \tilde y}^{1/2}, \quad \mathrm{score} = 1 - w_{\tilde y} / \textstyle\sum_i w_i

    p are the model's probabilities, calibrated to the given labels, and T is what becomes of each class, counted among
    the most confident predictions (`find_anchors`): a label that is often given by mistake is suspected sooner. With T
    instead of its root the score would be a posterior probability for noise that depends on the class alone; the root
    does not rely on that. Labels that people gave to CIFAR-10 are found at least as well as by the methods of
    cleanlab from the same probabilities, and labels that became the next class much better: docs/noise.md.

    >>> labels = torch.tensor([0, 1, 1, 0] * 50)
    >>> sure = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]] * 50)
    >>> labels[7] = 1
    >>> suspicious_examples(labels, sure, most=1).rows()[0]["index"]
    7
    """
    if most is not None and most < 0:
        raise ValueError(f"most must be a number of examples, not {most}")
    data, _ = calibrated(as_sample(labels, probabilities, every_class=False))
    counts = find_anchors(data).counts + COUNTED
    transitions = (counts / counts.sum(1, keepdim=True)) ** TRUST
    weighted = data.probabilities * transitions.t()[data.labels]
    given = data.labels[:, None]
    own = weighted.gather(1, given)[:, 0]
    score = 1 - own / weighted.sum(1)
    order = torch.argsort(score, descending=True, stable=True)[:most]
    likely = weighted[order].scatter(1, given[order], -1.0).argmax(1)
    return SuspiciousExamples(order.numpy(), data.labels[order].numpy(), likely.numpy(), score[order].numpy())
