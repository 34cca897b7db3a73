"""Which class is taken for which."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, labels_of, predicted_classes


def confusion_matrix(predicted: ArrayLike, labels: ArrayLike, classes: int) -> Tensor:
    """Counts (K, K): row i, column j is how many examples of class i were predicted as class j.

    `predicted` are classes (N,), or logits or probabilities (N, K).

    >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), classes=2)
    tensor([[1, 1],
            [0, 1]])
    """
    if classes < 1:
        raise ValueError(f"classes must be at least 1, not {classes}")
    said = predicted_classes(predicted, classes)
    true = labels_of(labels, len(said), classes)
    return torch.bincount(true * classes + said, minlength=classes * classes).view(classes, classes)


def confusion_rates(predicted: ArrayLike, labels: ArrayLike, classes: int) -> Tensor:
    """The confusion matrix with each row divided by its sum: the share of class i that was predicted as j.

    The rows of classes without examples are NaN; the diagonal is the accuracy of each class.

    >>> confusion_rates(torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), classes=2).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    counts = confusion_matrix(predicted, labels, classes).double()
    return counts / counts.sum(1, keepdim=True)
