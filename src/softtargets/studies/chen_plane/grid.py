"""The grid: a clean rate for each column, a smoothing for each row, a net for each seed."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.recipes import (
    Clean,
    CrossEntropy,
    LabelSmoothing,
    Noise,
    Recipe,
    Regulariser,
    Symmetric,
)
from softtargets.studies.study import Settings, Trial

KEEP = ("test",)
AXES = ("seed", "noise", "noise.name", "noise.rate", "noise.type", "regulariser", "regulariser.name",
        "regulariser.alpha", "regulariser.spread")  # fmt: skip


@dataclass(frozen=True)
class Plane:
    """The clean rates a and the masses p on the label that are trained, both rising."""

    rates: tuple[float, ...]
    masses: tuple[float, ...]


@dataclass(frozen=True)
class Scope:
    """What a study of the plane is about: a grid and a recipe for each size, and words for the page.

    grids:   the default size first.
    dataset: what the page calls the data.
    apart:   by size, how this differs from the paper.
    losses_only: whether the paper shows nothing but losses (figures 5 to 7) for these data.
    """

    dataset: str
    grids: dict[str, tuple[Plane, Recipe]]
    apart: dict[str, tuple[str, ...]]
    losses_only: bool = False


def trials(scope: Scope, settings: Settings) -> list[Trial]:
    """Every p for every a, for each seed."""
    plane, recipe = scope.grids[settings.size]
    base = settings.base(recipe)
    return [
        Trial(
            base.replace({"regulariser": smoothing(p), "noise": noise(a), "seed": seed}),
            {"size": settings.size, "a": a, "p": p},
        )
        for seed in range(settings.seeds)
        for a in plane.rates
        for p in plane.masses
    ]


def smoothing(p: float) -> Regulariser:
    """Mass p on the label and the rest on the others, in equal parts.

    >>> smoothing(0.9)
    LabelSmoothing(alpha=0.1, spread='others', matrix=None)
    >>> smoothing(1.0)
    CrossEntropy()
    """
    return LabelSmoothing(alpha=_rest(p), spread="others") if p < 1 else CrossEntropy()


def noise(a: float) -> Noise:
    """Labels that are right with probability a.

    >>> noise(0.8)
    Symmetric(type='alpha', rate=0.2)
    """
    return Symmetric(rate=_rest(a)) if a < 1 else Clean()


def _rest(share: float) -> float:
    # 1 - 0.9 is 0.09999999999999998; recipes are named by their numbers, so these are the ones that people write.
    return round(1 - share, 6)
