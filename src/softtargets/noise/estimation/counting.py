"""Estimates that count: every example, or only those of which the model is as sure as it usually is."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softtargets.noise.estimation.sample import NoisySample

_ROUNDING = 1e-9  # a class whose probabilities are all the same is as sure as it usually is


def naive_joint(data: NoisySample) -> Tensor:
    r"""Q[i, j], the share of examples that are predicted as i and labelled j.

    .. math:: Q_{ij} = \frac{1}{N} \sum_n [\arg\max_k p_{nk} = i] \, [\tilde y_n = j]

    The mistakes of the model are counted as mistakes of the labels: where it is right with probability a, and noise
    leaves c of the labels right, it finds about a c.
    """
    predicted = nn.functional.one_hot(data.probabilities.argmax(1), data.classes).double()
    return data.by_label(predicted) / data.weights.sum()


def confident_joint(data: NoisySample) -> Tensor:
    r"""Q[i, j], an estimate of P(clean = i, noisy = j), after Northcutt et al., "Confident learning", 2021, section 3.

    An example counts for class i if its probability is at least the mean of that class's own,

    .. math:: t_i = \frac{1}{|\tilde y = i|} \sum_{n: \tilde y_n = i} p_{ni}

    and for the likeliest if there are several. What is counted with a label is scaled to how many have that label. (The
    paper writes the noisy label first; here the clean one is, as in T.) A label of which no example counts is taken to
    be right.

    Sure examples are mostly right ones, so that overlapping classes bias it much less than the naive estimate, and in
    the same direction.
    """
    counts = torch.bincount(data.labels, data.weights, data.classes)
    own = data.probabilities.gather(1, data.labels[:, None])[:, 0]
    totals = torch.bincount(data.labels, data.weights * own, data.classes)
    # Without any label of a class, as in a resample, nobody can be sure of it.
    thresholds = torch.where(counts > 0, totals / counts, torch.inf)
    sure = data.probabilities >= thresholds - _ROUNDING
    best = data.probabilities.where(sure, -1.0).argmax(1)
    taken = nn.functional.one_hot(best, data.classes).double() * sure.any(1, keepdim=True)
    joint = data.by_label(taken)
    found = joint.sum(0)
    scaled = torch.where(found > 0, joint / found * counts, torch.diag(counts))
    return scaled / counts.sum()
