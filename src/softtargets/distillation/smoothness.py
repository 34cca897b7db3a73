"""How smooth targets are: the index that puts temperatures and label smoothing on one axis."""

from __future__ import annotations

import torch

from softtargets.arrays import ArrayLike, as_labels, as_probabilities


def smoothness_index(teacher_probabilities: ArrayLike, labels: ArrayLike) -> float:
    r"""The mass that targets put on wrong classes, counted as a strength of label smoothing.

    .. math:: \gamma = \mathrm{E}\Big[\sum_k (1 - y_k)\, p_k \frac{K}{K - 1}\Big]

    Müller et al. 2019, section 4, where p is what the teacher says at temperature T of the training set. Hard
    targets have 0, uniform ones 1, label smoothing with `alpha` spread over all K classes has alpha. A teacher that
    is sure and always wrong has K / (K - 1).

    >>> smoothed = torch.tensor([[0.925, 0.025, 0.025, 0.025]])  # alpha = 0.1: 0.9 and a tenth over four classes
    >>> round(smoothness_index(smoothed, torch.tensor([0])), 6)
    0.1
    """
    p = as_probabilities(teacher_probabilities, "teacher_probabilities")
    examples, classes = p.shape
    if classes < 2:
        raise ValueError("smoothness needs at least 2 classes: with 1 there is no wrong class")
    y = as_labels(labels, examples, classes).to(p.device)
    # The wrong classes are added up, since 1 - p_y loses the digits of a small index.
    wrong = p.to(torch.float64).scatter(1, y[:, None], 0.0).sum(1)
    return float(wrong.mean()) * classes / (classes - 1)
