"""What the studies of section 4.2 train: wrong labels of two kinds, met by one p and by a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softtargets.recipes import ClassConditional, Recipe, Regulariser
from softtargets.studies.chen_forward_correction.grid import (
    AXES,
    BAYES,
    CLASSES,
    NONE,
    UNIFORM,
    Matrix,
    matrix_smoothing,
    numbers,
    remedy,
    targets,
    transitions,
)
from softtargets.studies.grids import each_seed, noise, smoothing_to, stretched
from softtargets.studies.study import Settings, Trial
from softtargets.theory import mean_field_p, optimal_matrix, uniform_matrix

__all__ = [
    "AXES",
    "BAYES",
    "CLASSES",
    "HARD",
    "SCALAR",
    "STAR",
    "STRONG",
    "WAYS",
    "Kind",
    "Matrix",
    "Scope",
    "trials",
]

# Hard labels; one p, best against clean and against corrupted test labels; the matrices that are.
HARD, SCALAR, STRONG, STAR = NONE, UNIFORM, "uniform, stronger", "S* = T Tᵗ"
# By kind of noise. Where it is symmetric, both matrices are smoothings by one p: S* is the stronger one.
WAYS: dict[str, tuple[str, ...]] = {
    "symmetric": (HARD, SCALAR, STAR),
    "pair": (HARD, SCALAR, STRONG, BAYES, STAR),
}

Kind = tuple[str, float]


@dataclass(frozen=True)
class Scope:
    """What one of these studies is about: for each size, the default first, how labels go wrong, and a recipe.

    apart: by size, what the reader must know of the training.
    """

    dataset: str
    sizes: dict[str, tuple[tuple[Kind, ...], Recipe]]
    apart: dict[str, str]


def trials(scope: Scope, settings: Settings) -> list[Trial]:
    """For each kind of noise and each seed every way to meet it; rates that drop do so at 1/2 and 3/4."""
    kinds, recipe = scope.sizes[settings.size]
    cells = []
    for kind, rate in kinds:
        T = noise_matrix(kind, rate)
        wrong = noise(1 - rate) if kind == "symmetric" else ClassConditional(matrix=numbers(T))
        for way in WAYS[kind]:
            varied = {"regulariser": loss_of(way, kind, T), "noise": wrong}
            cells.append((varied, {"noise": kind, "rate": rate, "method": way}))
    return each_seed(settings, stretched(settings.base(recipe), settings, 1 / 2, 3 / 4), cells)


def noise_matrix(kind: str, rate: float) -> Matrix:
    """T: row i is what becomes of the clean label i.

    >>> noise_matrix("symmetric", 0.45)[0, :2].round(3).tolist(), noise_matrix("pair", 0.45)[0, :3].tolist()
    ([0.55, 0.05], [0.55, 0.45, 0.0])
    """
    return np.asarray(uniform_matrix(1 - rate, CLASSES)) if kind == "symmetric" else transitions(kind, rate)


def target_matrix(way: str, T: Matrix) -> Matrix:
    """S: row k is what label k is trained on.

    >>> target_matrix(STAR, noise_matrix("pair", 0.2))[0].round(2).tolist()
    [0.68, 0.16, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.16]
    """
    if way == STAR:
        return optimal_matrix(T, "beta")
    return np.asarray(uniform_matrix(_strong(T), len(T))) if way == STRONG else targets(way, T)


def loss_of(way: str, kind: str, T: Matrix) -> Regulariser:
    """A way to meet the noise T, as a recipe has it.

    For symmetric noise S* has one p on its diagonal, and is written so: then it is the same recipe, and the same run.

    >>> loss_of(STAR, "symmetric", noise_matrix("symmetric", 0.5))
    LabelSmoothing(alpha=0.722222, spread='others')
    """
    if way == STRONG or (way == STAR and kind == "symmetric"):
        return smoothing_to(round(_strong(T), 6))
    return matrix_smoothing(target_matrix(way, T)) if way == STAR else remedy(way, T)


def _strong(T: Matrix) -> float:
    return float(mean_field_p(T, "beta"))
