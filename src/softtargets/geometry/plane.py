"""The plane through three class templates, penultimate activations seen on it, and triangles: how equilateral."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_tensor
from softtargets.geometry.activations import as_activations, as_real, as_templates, three_classes

BLOCK = 1 << 21  # distances at a time: 16 MiB
MANY = 1000  # points from which subtracting every pair takes too long


def template_plane(weights: ArrayLike, classes: Sequence[int]) -> Tensor:
    """An orthonormal basis (D, 2) of the plane through the templates of three classes.

    Müller et al. 2019, section 2; as in the replication's section 4 it comes from the QR decomposition of the
    differences between the templates (rows of the last layer's weights, K x D; for a translation model one row per
    token). The first axis points from the third template to the first, and the second template lies on the positive
    side, so that pictures do not flip between seeds. Adding one vector to all templates changes nothing.

    Worked out in double precision and given in that of the weights. Templates are on one line when what is left of
    the second beside the first axis is no more than a rounding error of their size.

    >>> template_plane(torch.eye(3), [0, 1, 2]).T @ template_plane(torch.eye(3), [0, 1, 2])
    tensor([[1.0000, 0.0000],
            [0.0000, 1.0000]])
    """
    w = as_templates(weights, least=2)
    chosen = three_classes(classes, len(w))
    templates = w[chosen].to(torch.float64)
    first, second, third = templates
    basis, triangle = torch.linalg.qr(torch.stack([first - third, second - third], dim=1))
    size = triangle.diagonal().abs()
    rounding = torch.finfo(w.dtype).eps * float(templates.norm(dim=1).max())
    if float(size.min()) <= max(rounding, 1e-12 * float(size.max())):
        raise ValueError(f"the templates of classes {chosen} lie on one line, so they span no plane")
    plane: Tensor = basis * triangle.diagonal().sign()
    return plane.to(w.dtype)


def project(activations: ArrayLike, basis: ArrayLike) -> Tensor:
    """Coordinates (N, 2) of activations (N, D) on a plane from `template_plane`.

    >>> project(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]))
    tensor([[3., 1.]])
    """
    axes = as_real(basis, "basis")
    if axes.ndim != 2 or axes.shape[1] != 2:
        raise ValueError(
            f"a basis must be (dimensions, 2), as template_plane returns it, not {tuple(axes.shape)}"
        )
    found = as_activations(activations, len(axes))
    return found.to(axes.dtype) @ axes.to(found.device)


def cluster_spread(points: ArrayLike, labels: ArrayLike) -> float:
    """How tight the clusters are: within-class deviation over the mean distance between class centres.

        sqrt(mean over examples of |x - centre of its class|^2) / mean over pairs of |centre - other centre|

    Without units, so that models with different scales of activation can be compared. 0 is full collapse; infinite
    where all centres are the same. `points` may be on a plane or in the whole space, (N, D).

    >>> points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0], [12.0, 0.0]])
    >>> cluster_spread(points, torch.tensor([0, 0, 1, 1]))
    0.1
    """
    x = as_activations(points).to(torch.float64)
    y = as_tensor(labels).to(x.device)
    if y.shape != (len(x),):
        raise ValueError(f"there must be one label for each of the {len(x)} points, not {tuple(y.shape)}")
    present, which, counts = y.unique(return_inverse=True, return_counts=True)
    if len(present) < 2:
        raise ValueError("need points of at least two classes")
    centres = x.new_zeros(len(present), x.shape[1]).index_add_(0, which, x) / counts[:, None]
    within = (x - centres[which]).square().sum(-1).mean().sqrt()
    return float(within / mean_distance(centres))


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

    It is at most 1, and 1 for equal sides only: Weitzenböck's inequality (Mathematische Zeitschrift 5, 1919).
    Moving, turning, mirroring and scaling do not change it. Two sides equal, the third s times as long: sqrt(3) s
    sqrt(4 - s^2) / (2 + s^2), which is 0.89 for s = 2/3 and 0.75 for s = 1/2.

    >>> round(equilateral(torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])), 4)
    0.8314
    """
    first, second, third = _three(points)
    differences = torch.stack([first - third, second - third, first - second], dim=1)
    size = float(differences.abs().max())
    if size == 0:
        raise ValueError("the three points are equal, so they are not a triangle")
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
    for some in torch.arange(count, device="cpu").split(max(1, BLOCK // count)):
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
