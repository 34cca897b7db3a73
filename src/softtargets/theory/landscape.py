"""The figures of the theory, as numbers.

| Chen et al. 2020 | here |
|---|---|
| figure 1, the loss over a and p for two classes | ``landscape(2, kind)`` for the three kinds |
| figure 2, the best p for two classes | ``optimum_curve(2, kind)`` |
| figure 3, the same for M classes | ``optimum_curve(M, "alpha")`` and ``"beta"``, ``math.inf`` for the limit |
| figure 4, the same for the gamma type | ``optimum_curve(M, "gamma")`` |
| figure 5 a and c, predicted test loss | ``landscape(10, "alpha", a, p)`` on the grid that was trained |
| figures 6 and 7, slices at one a | ``generalization_loss(p, a, 10, "alpha")``, ``"beta"`` for figure 7 |

`softtargets.theory.drawing` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softtargets.arrays import as_numbers
from softtargets.theory.arguments import Array, as_kind, one_number_of_classes
from softtargets.theory.loss import generalization_loss
from softtargets.theory.optimum import optimal_p
from softtargets.theory.transition import gamma_transition


@dataclass(frozen=True)
class Landscape:
    """The loss for each p (rows) and each a (columns), and for each a the best p and its loss.

    `best_p` is the exact one, whatever the grid; `best_p_on_grid` is the best of the given p, as a grid of
    trainings would find it. `jump` is the a at which the best p jumps, for the gamma type from three classes
    on.
    """

    kind: str
    classes: int
    a: Array
    p: Array
    loss: Array
    best_p: Array
    best_loss: Array
    jump: float | None

    @property
    def best_p_on_grid(self) -> Array:
        """For each a, the p of the grid with the lowest loss; the larger one if two are equally good."""
        as_good = self.loss <= self.loss.min(0) * (1 + 1e-12)  # but for rounding
        lowest = len(self.p) - 1 - as_good[::-1].argmax(0)
        return np.asarray(self.p[lowest])


@dataclass(frozen=True)
class OptimumCurve:
    """The best p for each a; `jump` is the a at which it jumps, for the gamma type from three classes on."""

    kind: str
    classes: float
    a: Array
    p: Array
    jump: float | None


def landscape(classes: int, kind: str, a: Any = None, p: Any = None, limits: bool = False) -> Landscape:
    """`generalization_loss` over the plane of a and p. Without grids both are 0.01, 0.02 ... 0.99, as in figure 5.

    With `limits` grids may contain 0 and 1, which stand for training without noise or without smoothing; there the
    loss may be infinite.

    >>> found = landscape(10, "alpha", a=[0.5, 0.8], p=[0.3, 0.6, 0.9])
    >>> found.loss.round(3)
    array([[1.879, 1.474],
           [1.812, 1.031],
           [2.303, 0.984]])
    >>> found.best_p, found.best_p_on_grid
    (array([0.5, 0.8]), array([0.6, 0.9]))
    """
    kind = as_kind(kind)
    count = one_number_of_classes(classes)
    a, p = _grid("a", a), _grid("p", p)
    loss = generalization_loss(p[:, None], a, count, kind, limits)
    best = optimal_p(a, count, kind, limits)
    lowest = generalization_loss(best, a, count, kind, limits=True)
    return Landscape(kind, int(count), a, p, loss, best, lowest, _jump(kind, count))


def optimum_curve(classes: Any, kind: str, a: Any = None, limits: bool = False) -> OptimumCurve:
    """`optimal_p` against a. Without a grid a is 0.005, 0.01 ... 0.995, and both sides of a jump.

    >>> found = optimum_curve(10, "beta", a=[0.1, 0.5, 0.9])
    >>> found.p.round(4), found.jump
    (array([0.1   , 0.2778, 0.8111]), None)
    >>> round(optimum_curve(10, "gamma").jump, 6)
    0.476818
    """
    kind = as_kind(kind)
    count = one_number_of_classes(classes, infinite=True)
    jump = _jump(kind, count)
    if a is None:
        a = np.arange(1, 200) / 200
        if jump is not None:
            a = np.unique(np.concatenate([a, [jump, np.nextafter(jump, 1)]]))
    a = _grid("a", a)
    return OptimumCurve(kind, float(count), a, optimal_p(a, count, kind, limits), jump)


def _jump(kind: str, classes: Array) -> float | None:
    if kind != "gamma":
        return None
    found = gamma_transition(classes)
    return found.a if found.jump > 0 else None


def _grid(name: str, values: Any) -> Array:
    if values is None:
        values = np.arange(1, 100) / 100
    found = as_numbers(name, values)
    if found.ndim != 1 or len(found) == 0 or not (np.diff(found) > 0).all():
        raise ValueError(
            f"{name} must be a list of increasing numbers, at least one, not {np.array2string(found, threshold=6)}"
        )
    return found
