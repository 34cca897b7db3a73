"""What an estimate is given: labels and probabilities, checked and in double precision."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_labels, as_probabilities


class NoisySample(NamedTuple):
    """Labels (N,), probabilities (N, K), and how often each example counts (N,), on the CPU."""

    labels: Tensor
    probabilities: Tensor
    weights: Tensor

    @property
    def classes(self) -> int:
        """K."""
        return self.probabilities.shape[1]

    def counted(self, weights: Tensor) -> NoisySample:
        """The same examples, each counted so often; those counted never are left out."""
        there = weights > 0
        return NoisySample(self.labels[there], self.probabilities[there], weights[there])

    def by_label(self, rows: Tensor) -> Tensor:
        """Weighted sums of rows (N, K) over the examples of each label, transposed: (K, labels)."""
        summed = rows.new_zeros(self.classes, self.classes)
        return summed.index_add_(0, self.labels, rows * self.weights[:, None]).t()


def as_sample(labels: ArrayLike, probabilities: ArrayLike, *, every_class: bool = True) -> NoisySample:
    """Check what somebody gave; labels of `every_class` may be asked for.

    >>> as_sample(torch.tensor([0, 0, 1]), torch.tensor([[0.5, 0.5, 0.0]] * 3))
    Traceback (most recent call last):
    ValueError: no example is labelled 2, so the noise of that class cannot be estimated; leave the class out of the
    probabilities
    """
    found = as_probabilities(probabilities).detach().cpu().double()
    examples, classes = found.shape
    if classes < 2:
        raise ValueError(f"labels can only be wrong among at least two classes, not {classes}")
    wanted = as_labels(labels, examples, classes).cpu()
    if every_class and examples < classes:
        raise ValueError(
            f"{examples} examples are too few for {classes} classes; give at least one of each class"
        )
    counts = torch.bincount(wanted, minlength=classes)
    if every_class and not bool(counts.all()):
        raise ValueError(
            f"no example is labelled {int((counts == 0).nonzero()[0])}, so the noise of that class cannot be "
            "estimated; leave the class out of the probabilities"
        )
    sums = found.sum(1, keepdim=True)
    return NoisySample(wanted, found / sums, torch.ones_like(sums[:, 0]))
