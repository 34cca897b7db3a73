"""The plane through three class templates, and penultimate activations seen on it."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ArrayLike = Tensor | NDArray[np.generic]


def template_plane(weights: ArrayLike, classes: Sequence[int]) -> Tensor:
    """An orthonormal basis (D, 2) of the plane through the templates of three classes.

    Müller et al. 2019, section 2: the basis comes from the QR decomposition of the differences between the
    templates (rows of the last layer's weights, K x D). The first axis points from the third template to the
    first, and the second template lies on the positive side, so that pictures do not flip between seeds.

    >>> template_plane(torch.eye(3), [0, 1, 2]).T @ template_plane(torch.eye(3), [0, 1, 2])
    tensor([[1.0000, 0.0000],
            [0.0000, 1.0000]])
    """
    w = torch.as_tensor(weights)
    if w.ndim != 2 or w.shape[1] < 2:
        raise ValueError(f"need weights (K, D) with D of at least 2, not {tuple(w.shape)}")
    if not bool(torch.isfinite(w).all()):
        raise ValueError("weights contain NaN or infinite values")
    chosen = [operator.index(c) for c in classes]
    if len(set(chosen)) != 3 or not all(0 <= c < len(w) for c in chosen):
        raise ValueError(f"need three different classes from 0 to {len(w) - 1}, not {chosen}")
    first, second, third = w[chosen].to(torch.float64)
    basis, triangle = torch.linalg.qr(torch.stack([first - third, second - third], dim=1))
    size = triangle.diagonal().abs()
    if float(size.min()) <= 1e-12 * float(size.max()):
        raise ValueError(f"the templates of classes {chosen} lie on one line, so they span no plane")
    plane: Tensor = basis * triangle.diagonal().sign()
    return plane.to(w.dtype if w.dtype.is_floating_point else torch.float64)


def project(activations: ArrayLike, basis: Tensor) -> Tensor:
    """Coordinates (N, 2) of activations (N, D) on a plane from `template_plane`."""
    return torch.as_tensor(activations).to(basis.dtype) @ basis


def cluster_spread(points: ArrayLike, labels: ArrayLike) -> float:
    """How tight the clusters are: within-class deviation over the mean distance between class centres.

    Without units, so that nets with different scales of activation can be compared. 0 is full collapse.

    >>> points = torch.tensor([[0.0, 0.0], [2.0, 0.0], [10.0, 0.0], [12.0, 0.0]])
    >>> cluster_spread(points, torch.tensor([0, 0, 1, 1]))
    0.1
    """
    x, y = torch.as_tensor(points).to(torch.float64), torch.as_tensor(labels)
    present = torch.unique(y)
    if len(present) < 2:
        raise ValueError("need points of at least two classes")
    centres = torch.stack([x[y == c].mean(0) for c in present])
    scatter = torch.cat([x[y == c] - centre for c, centre in zip(present, centres, strict=True)])
    within = scatter.square().sum(-1).mean().sqrt()
    return float(within / torch.pdist(centres).mean())
