"""How often labels differ from a model's predictions where it is most confident."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.noise.estimation.sample import NoisySample

SHARES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # of the predictions of each class, the most confident first
FIRST = 0.3  # shares up to which classes are compared
COMPARED = 16  # anchors of an average class: among fewer, the best classes are those with the best luck
FEWEST = 50  # anchors: with fewer, a fifth of them wrong may be anything from a tenth to a third


class Anchors(NamedTuple):
    """The most confident predictions of each class, and what their labels say.

    `share` of the predictions are anchors, `examples` altogether. `joint` is Q (K, K), Q[i, j] = P(predicted i,
    labelled j) if all predictions were as good as the anchors; `disagreement` is 1 less its trace. `curve` is the
    disagreement of every share that was tried. `lowest` is the disagreement of the best quarter of the classes, by how
    often they are predicted, where an average class has 16 anchors; otherwise that of all.
    """

    share: float
    examples: int
    joint: Tensor
    disagreement: float
    lowest: float
    curve: dict[float, float]

    @property
    def counts(self) -> Tensor:
        """How many anchors of a class have which label, (K, K), as if classes had as many anchors as predictions."""
        return self.joint * self.examples


def find_anchors(data: NoisySample) -> Anchors:
    r"""The first s of the predictions, by confidence and of each class alike, for the s with the fewest disagreements.

    .. math:: Q_{ij}(s) = P(\hat y = i) \, P(\tilde y = j \mid \hat y = i, \text{among the first } s), \quad
              A(s) = 1 - \sum_i Q_{ii}(s)

    Mistakes of a model become rarer the more confident it is, and wrong labels that have nothing to do with the looks
    of an example do not: where the curve A(s) begins flat, it shows how many there are. The least of A, where an
    isotonic regression begins, was closer to the truth than A of any one share. Shares with fewer than 50 examples are
    left out. Anchor points are of Liu and Tao, "Classification with noisy labels by importance reweighting", 2016, who
    read the largest probability; here labels are counted, and only the order of confidences matters.

    >>> labels = torch.tensor([0, 1, 1, 0] * 250)
    >>> sure = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.4, 0.6], [0.4, 0.6]] * 250)
    >>> found = find_anchors(NoisySample(labels, sure, torch.ones(1000)))
    >>> round(found.curve[0.5], 3), found.curve[1.0], found.share, found.disagreement
    (0.124, 0.25, 0.3, 0.0)
    """
    top, predicted = data.probabilities.max(1)
    order = torch.argsort(top, descending=True, stable=True)
    order = order[torch.argsort(predicted[order], stable=True)]
    of, labels, weights = predicted[order], data.labels[order], data.weights[order]
    masses = torch.bincount(of, weights, data.classes)
    total = float(masses.sum())
    # What comes before an example among the predictions of its class, from 0 to 1; the first always counts.
    rank = (weights.cumsum(0) - weights - (masses.cumsum(0) - masses)[of]) / masses[of]
    cells = of * data.classes + labels
    tried = [share for share in SHARES if share * total >= FEWEST] or [1.0]
    joints, curve, lowest = {}, {}, 1.0
    for share in tried:
        # Of a weight of 1 and a rank of 0.1 rounding must not make two.
        taken = rank < share - 1e-9
        counts = torch.bincount(cells[taken], weights[taken], data.classes**2).view(data.classes, -1)
        joints[share] = counts * (masses / total / counts.sum(1).clamp(min=1e-300))[:, None]
        curve[share] = max(1 - float(joints[share].trace()), 0.0)
        if share <= FIRST and share * total >= COMPARED * data.classes:
            lowest = min(lowest, _best_quarter(counts, masses))
    best = min(tried, key=lambda share: (curve[share], -share))
    examples = round(float(weights[rank < best - 1e-9].sum()))
    return Anchors(best, examples, joints[best], curve[best], min(lowest, curve[best]), curve)


def _best_quarter(counts: Tensor, masses: Tensor) -> float:
    """The disagreement that a quarter of the predictions do not exceed, where each has that of its class."""
    disagreements = 1 - counts.diagonal() / counts.sum(1).clamp(min=1e-300)
    order = torch.argsort(disagreements)
    reached = masses[order].cumsum(0) >= masses.sum() / 4
    return max(float(disagreements[order][reached][0]), 0.0)


def anchor_joint(data: NoisySample) -> Tensor:
    """Q (K, K) of `find_anchors`."""
    return find_anchors(data).joint
