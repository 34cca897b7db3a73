"""Three points: how far apart, and how equilateral."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.geometry.checking import as_real

BLOCK = 1 << 21  # distances at a time: 16 MiB
MANY = 1000  # points from which subtracting every pair takes too long


def sides(points: ArrayLike) -> tuple[float, float, float]:
    """Distances between three points (3, D): first to second, first to third, second to third.

    >>> sides(torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]]))
    (3.0, 4.0, 5.0)
    """
    first, second, third = _three(points).tolist()
    return math.dist(first, second), math.dist(first, third), math.dist(second, third)


def equilateral(points: ArrayLike) -> float:
    """How equilateral a triangle (3, D) is: 1 for three equal sides, 0 for three points on a line.

        4 sqrt(3) area / (a^2 + b^2 + c^2)

    It is at most 1, and 1 for equal sides only: Weitzenböck's inequality (Mathematische Zeitschrift 5, 1919). Moving,
    turning, mirroring and scaling leave it alone. Two sides equal, the third s times as long: sqrt(3) s sqrt(4 - s^2)
    / (2 + s^2), which is 0.89 for s = 2/3 and 0.75 for s = 1/2.

    >>> round(equilateral(torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])), 4)
    0.8314
    """
    first, second, third = _three(points)
    differences = torch.stack([first - third, second - third, first - second], dim=1)
    size = float(differences.abs().max())
    if size == 0:
        raise ValueError("the three points are one point, which is no triangle")
    differences /= size
    # The product of the diagonal is the area of the parallelogram, without the cancellation of a Gram determinant.
    shape = torch.linalg.qr(differences[:, :2], mode="r").R
    area = float(shape.diagonal().prod().abs()) / 2 if len(shape) == 2 else 0.0
    return min(1.0, 4 * math.sqrt(3) * area / float(differences.square().sum()))


def mean_distance(points: Tensor) -> Tensor:
    """The mean distance over all pairs of points (N, D), in blocks of rows: 50 thousand points need no N x N matrix.

    Many points are compared by products of matrices, after their mean is taken away: exact to about 1e-8 of their
    size for each pair.
    """
    count = len(points)
    mode = "donot_use_mm_for_euclid_dist" if count <= MANY else "use_mm_for_euclid_dist"
    points = points - points.mean(0)
    total = points.new_zeros(())
    for some in torch.arange(count).split(max(1, BLOCK // count)):
        start, stop = int(some[0]), int(some[-1]) + 1
        block = torch.cdist(points[start:stop], points[start:], compute_mode=mode)
        total = total + block.triu(1).sum()
    return total / (count * (count - 1) / 2)


def _three(points: ArrayLike) -> Tensor:
    found = as_real(points, "points").double()
    if found.ndim != 2 or len(found) != 3 or found.shape[1] == 0:
        raise ValueError(f"need three points (3, D), not {tuple(found.shape)}")
    if not bool(torch.isfinite(found).all()):
        raise ValueError("points contain NaN or infinite values")
    return found
