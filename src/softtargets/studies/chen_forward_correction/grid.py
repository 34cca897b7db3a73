"""What the study trains: labels that go wrong in one direction, met in five ways."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softtargets.noise import pair_transitions
from softtargets.recipes import ClassConditional, ForwardCorrection, LabelSmoothing, Recipe, Regulariser
from softtargets.studies.chen_mnist import PAPER, QUICK
from softtargets.studies.grids import each_seed, smoothing, smoothing_to
from softtargets.studies.study import Settings, Trial
from softtargets.theory import mean_field_p, optimal_matrix, uniform_matrix

Matrix = NDArray[np.float64]

CLASSES = 10
AXES = ("seed", "noise", "noise.name", "noise.matrix", "noise.type", "regulariser", "regulariser.name",
        "regulariser.alpha", "regulariser.spread", "regulariser.matrix")  # fmt: skip

NONE, UNIFORM, PRINTED, BAYES, FORWARD = "none", "uniform", "S = T", "S by Bayes", "forward"
METHODS = (NONE, UNIFORM, PRINTED, BAYES, FORWARD)

# Digits that are written alike: the first is taken for the second, and only one pair for each other.
ALIKE = ((2, 7), (3, 8), (5, 6), (6, 5), (7, 1))
# S = T alone holds what happens for impossible, which costs infinitely much: so much of it is spread evenly.
MIXED = 0.05

# By size: how labels go wrong and how often, and the training of chen-mnist. With three seeds the full one is 90 runs
# of 6 million images.
SIZES: dict[str, tuple[tuple[tuple[str, float], ...], Recipe]] = {
    "small": ((("pair", 0.3), ("pair", 0.45), ("alike", 0.45)), QUICK),
    "full": (
        (("pair", 0.15), ("pair", 0.3), ("pair", 0.45), ("alike", 0.15), ("alike", 0.3), ("alike", 0.45)),
        PAPER,
    ),
}


def trials(settings: Settings) -> list[Trial]:
    """For each kind of noise and each seed, every way to meet it."""
    noises, recipe = SIZES[settings.size]
    cells = []
    for kind, rate in noises:
        T = transitions(kind, rate)
        for method in METHODS:
            varied = {"regulariser": remedy(method, T), "noise": ClassConditional(matrix=numbers(T))}
            cells.append((varied, {"noise": kind, "rate": rate, "method": method}))
    return each_seed(settings, settings.base(recipe), cells)


def transitions(kind: str, rate: float) -> Matrix:
    """T: ``pair`` takes every class for the next one, ``alike`` some digits for others that look like them.

    >>> transitions("alike", 0.25)[7].tolist()
    [0.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.75, 0.0, 0.0]
    """
    if kind == "pair":
        return pair_transitions(rate, CLASSES)
    T = np.eye(CLASSES)
    for clean, given in ALIKE:
        T[clean, clean], T[clean, given] = 1 - rate, rate
    return T


def targets(method: str, T: Matrix) -> Matrix:
    """S: row k is what label k is trained on, in all ways but forward correction.

    The paper's S = T has a little spread evenly, so that nothing is held for impossible.
    """
    if method == NONE:
        return np.eye(len(T))
    if method == UNIFORM:
        return np.asarray(uniform_matrix(mean_field_p(T, "alpha"), len(T)))
    return (1 - MIXED) * T + MIXED / len(T) if method == PRINTED else optimal_matrix(T, "alpha")


def remedy(method: str, T: Matrix) -> Regulariser:
    """A way to meet the noise T.

    >>> remedy("uniform", transitions("pair", 0.3))
    LabelSmoothing(alpha=0.3, spread='others')
    """
    if method == NONE:
        return smoothing(0)
    if method == FORWARD:
        return ForwardCorrection()
    if method == UNIFORM:
        return smoothing_to(round(float(mean_field_p(T, "alpha")), 6))
    return matrix_smoothing(targets(method, T))


def matrix_smoothing(S: Matrix) -> LabelSmoothing:
    """The loss with row k of S for the target of label k."""
    return LabelSmoothing(alpha=1.0, matrix=numbers(S))


def numbers(matrix: Matrix) -> tuple[tuple[float, ...], ...]:
    """A matrix as recipes have it: rows of rounded numbers."""
    # 1 - 0.45 is 0.55 but for rounding; recipes are named by their numbers, so these are the ones that people write.
    return tuple(tuple(round(float(value), 6) for value in row) for row in matrix)
