"""Taking the model's word: the class it predicts is taken for the clean label."""

from __future__ import annotations

from torch import Tensor, nn

from softtargets.noise.estimation.sample import NoisySample


def naive_joint(data: NoisySample) -> Tensor:
    r"""Q[i, j], the share of examples that are predicted as i and labelled j.

    .. math:: Q_{ij} = \frac{1}{N} \sum_n [\arg\max_k p_{nk} = i] \, [\tilde y_n = j]

    The mistakes of the model are counted as mistakes of the labels: where it is right with probability a, and noise
    leaves c of the labels right, it finds about a c.
    """
    predicted = nn.functional.one_hot(data.probabilities.argmax(1), data.classes).double()
    return data.by_label(predicted) / data.weights.sum()
