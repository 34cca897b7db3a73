"""The statements about the penultimate layer as numbers: an arc, a constant gap, constant norms."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.geometry import project, template_plane
from softtargets.runs import Predictions


def arc_ratio(points: Tensor, labels: Tensor, third: int) -> float:
    """How far two classes are from an arc around a third: their spread across it over their spread along it.

    Points (N, 2) of three classes; the centre is the mean of the third. Of the points of the other two, with distance r
    from the centre and angle t from their mean direction:

        deviation of r / (mean of r * deviation of t)

    0 is a perfect arc, 1 a spread that is the same in both directions; above 1 they are spread towards the third class.

    >>> angles = torch.tensor([-0.4, -0.2, 0.2, 0.4])
    >>> arc = torch.stack([angles.cos(), angles.sin()], dim=1)
    >>> points, labels = torch.cat([torch.zeros(1, 2), arc]), torch.tensor([7, 1, 1, 2, 2])
    >>> round(arc_ratio(points, labels, third=7), 6)
    0.0
    """
    away = (points[labels != third] - points[labels == third].mean(0)).double()
    r = away.norm(dim=1)
    direction = away.mean(0)
    across = direction[0] * away[:, 1] - direction[1] * away[:, 0]
    angle = torch.atan2(across, away @ direction)
    along = float(r.mean() * angle.std(correction=0))
    if not along > 0:
        raise ValueError("the points of the two classes lie in one direction, so they have no arc")
    return float(r.std(correction=0)) / along


def arc_of(said: Predictions, weights: Tensor, classes: tuple[int, int, int]) -> float:
    """The same of all examples of two similar classes and a third, on the plane of their templates."""
    chosen = torch.isin(said.labels, torch.tensor(classes))
    points = project(said.features[chosen], template_plane(weights, classes))
    return arc_ratio(points, said.labels[chosen], classes[2])


def logit_gaps(logits: Tensor, labels: Tensor) -> tuple[float, float]:
    """The mean of the correct logit minus an incorrect one, over examples and incorrect classes; its deviation over it.

    >>> mean, deviation = logit_gaps(torch.tensor([[5.0, 1.0, 1.0], [0.0, 4.0, 0.0]]), torch.tensor([0, 1]))
    >>> mean, deviation
    (4.0, 0.0)
    """
    correct = logits.gather(1, labels[:, None].long())
    gaps = (correct - logits).double()
    others = torch.ones_like(logits, dtype=torch.bool).scatter(1, labels[:, None].long(), value=False)
    found = gaps[others]
    return float(found.mean()), float(found.std(correction=0) / found.mean())


def predicted_gap(alpha: float, classes: int) -> float:
    """What smoothed targets ask for: log((1 - alpha + alpha / K) / (alpha / K)).

    >>> round(predicted_gap(0.1, 10), 3)
    4.511
    """
    return math.log((1 - alpha + alpha / classes) / (alpha / classes))


def norm_variation(weights: Tensor, bias: Tensor) -> float:
    """The deviation of the templates' norms over their mean; as in the paper the bias is part of a template.

    >>> norm_variation(torch.eye(3), torch.zeros(3))
    0.0
    """
    norms = torch.cat([weights, bias[:, None]], dim=1).double().norm(dim=1)
    return float(norms.std(correction=0) / norms.mean())
