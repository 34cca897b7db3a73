"""How close vectors are to a simplex: equal norms, equal angles, angles as large as can be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.geometry.activations import as_templates


@dataclass(frozen=True)
class Simplex:
    """Second property of neural collapse (NC2) for C vectors; each number is 0 for a simplex. See `simplex`.

    `maximal_angles` is NaN for more than D + 1 vectors, for which there is no simplex in D dimensions.
    """

    classes: int
    equal_norms: float
    equal_angles: float
    maximal_angles: float
    maximal_angles_rms: float

    def __repr__(self) -> str:
        return (
            f"Simplex({self.classes} classes: equal norms {self.equal_norms:.3g}, equal angles "
            f"{self.equal_angles:.3g}, maximal angles {self.maximal_angles:.3g})"
        )


def simplex(vectors: ArrayLike) -> Simplex:
    """Measures of Papyan, Han and Donoho 2020, figures 2 to 4, for vectors (C, D) as they are given.

    With cos(c, c') between vectors of two classes, over all pairs c != c':

        equal_norms        = Std |v_c| / Avg |v_c|                                (figure 2)
        equal_angles       = Std cos(c, c')                                       (figure 3)
        maximal_angles     = Avg |cos(c, c') + 1/(C - 1)|                         (figure 4)
        maximal_angles_rms = sqrt(Avg (cos(c, c') + 1/(C - 1))^2), at least as much

    Deviations are those of all there is (divided by C and by C (C - 1), not by one less). A vector of zeros counts as
    at right angles to every other.

    Up to D + 1 vectors the C x C cosines are computed: no more numbers than a D x D covariance. More vectors, such as
    the tokens of a vocabulary, need no C x C matrix, since with unit vectors u_c the rows of U

        sum over c, c' of cos   = |sum of u_c|^2,        sum over c, c' of cos^2 = |U^T U|_F^2,   with U^T U of D x D

    from which the C pairs of a vector with itself are taken away. The variance as a difference of these is exact
    enough just then: C > D + 1 vectors cannot all have the same angles, unless they all point the same way.

    >>> triangle = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    >>> found = simplex(triangle)
    >>> [round(value, 6) for value in (found.equal_norms, found.equal_angles, found.maximal_angles)]
    [0.0, 0.0, 0.0]
    >>> found = simplex(torch.eye(3))  # the angles are equal, but not as large as they could be
    >>> found.equal_angles, found.maximal_angles
    (0.0, 0.5)
    """
    v = as_templates(vectors, "vectors").double()
    count, size = v.shape
    if count < 2:
        raise ValueError("need vectors of at least two classes, not of 1")
    norms = torch.linalg.vector_norm(v, dim=1)
    if float(norms.max()) == 0:
        raise ValueError("the vectors are all zero, so they have no angles")
    units = v / torch.where(norms > 0, norms, 1)[:, None]
    spread, absolute, rms = _among_few(units) if count <= size + 1 else _among_many(units)
    return Simplex(count, float(norms.std(correction=0) / norms.mean()), spread, absolute, rms)


def _among_few(units: Tensor) -> tuple[float, float, float]:
    count = len(units)
    pairs = torch.triu_indices(count, count, offset=1, device=units.device)
    cosines = (units @ units.T)[pairs[0], pairs[1]]
    apart = cosines + 1 / (count - 1)
    return (
        float(cosines.std(correction=0)),
        float(apart.abs().mean()),
        math.sqrt(float(apart.square().mean())),
    )


def _among_many(units: Tensor) -> tuple[float, float, float]:
    count, pairs = len(units), len(units) * (len(units) - 1)
    itself = float(units.square().sum())  # how many are not zero: each has a cosine of 1 with itself
    mean = (float(units.sum(0).square().sum()) - itself) / pairs
    square = (float((units.T @ units).square().sum()) - itself) / pairs
    far = 1 / (count - 1)
    return (
        math.sqrt(max(square - mean * mean, 0.0)),
        math.nan,
        math.sqrt(max(square + 2 * far * mean + far * far, 0.0)),
    )
