"""How often labels differ from a model where it is most confident, and how much more often they do elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from softtargets.noise.estimation.sample import NoisySample

SHARES = (0.1, 0.2, 0.3, 0.5, 0.75, 1.0)  # of the predictions of each class, the most confident first


class Anchors(NamedTuple):
    """The most confident predictions of each class.

    `share` of them are anchors, `examples` altogether; `joint` is Q (K, K), what they say of all; `disagreement` is the
    share of labels that differ from them, `runner_up` the mean probability of the second class over that of the first.
    `curve` is the disagreement by share.
    """

    share: float
    examples: int
    joint: Tensor
    disagreement: float
    runner_up: float
    curve: dict[float, float]


def find_anchors(data: NoisySample) -> Anchors:
    r"""The share of the most confident predictions, of each class alike, among which labels disagree the least.

    .. math:: Q_{ij} = P(\hat y = i) \, P(\tilde y = j \mid \hat y = i, \text{anchor}), \quad
              A = \min_s \Big(1 - \sum_i Q_{ii}(s)\Big)

    Errors of a model become fewer the more confident it is, and wrong labels that have nothing to do with how an
    example looks do not: where the curve over s is flat at its beginning, it shows their rate. The least mean of a first
    part is where an isotonic regression begins (Barlow et al. 1972). Anchor points are those of Liu and Tao,
    "Classification with noisy labels by importance reweighting", 2016, who take the largest probability itself; here
    labels are counted, so that a model need not be calibrated for it.
    """
    top, predicted = data.probabilities.max(1)
    order = torch.argsort(top, descending=True, stable=True)
    order = order[torch.argsort(predicted[order], stable=True)]
    heft, of = data.weights[order], predicted[order]
    masses = torch.bincount(of, heft, data.classes)
    before = heft.cumsum(0) - heft
    before -= (masses.cumsum(0) - masses)[of]
    # The rank of an example among those of its class, from 0 to 1; the first of each class always counts.
    rank = before / masses[of]
    shares = masses / masses.sum()
    found = [_joint(data, order, of, rank < share - 1e-9, shares) for share in SHARES]
    disagreements = [1 - float(joint.trace()) for joint in found]
    best = min(range(len(SHARES)), key=disagreements.__getitem__)
    chosen = order[rank < SHARES[best] - 1e-9]
    two = data.probabilities[chosen].topk(2, dim=1).values
    return Anchors(
        share=SHARES[best],
        examples=len(chosen),
        joint=found[best],
        disagreement=max(disagreements[best], 0.0),
        runner_up=float((two[:, 1] / two[:, 0]).mean()),
        curve=dict(zip(SHARES, disagreements, strict=True)),
    )


def anchor_joint(data: NoisySample) -> Tensor:
    """Q (K, K) of `find_anchors`."""
    return find_anchors(data).joint


def _joint(data: NoisySample, order: Tensor, of: Tensor, taken: Tensor, shares: Tensor) -> Tensor:
    rows, which = nn.functional.one_hot(of[taken], data.classes).double(), order[taken]
    counts = NoisySample(data.labels[which], rows, data.weights[which]).by_label(rows)
    return counts / counts.sum(1, keepdim=True).clamp(min=1) * shares[:, None]
