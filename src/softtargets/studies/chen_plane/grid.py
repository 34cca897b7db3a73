"""The grid: a clean rate for each column, a smoothing for each row, a net for each seed."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.recipes import Recipe
from softtargets.studies.grids import NOISE_AXES, SMOOTHING_AXES, each_seed, noise, smoothing_to, stretched
from softtargets.studies.results import over
from softtargets.studies.study import Settings, Trial

AXES = ("seed", *NOISE_AXES, *SMOOTHING_AXES, "regulariser.spread")


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
    """Every p for every a, for each seed; rates that drop do so at a half and three quarters of the training."""
    plane, recipe = scope.grids[settings.size]
    base = stretched(settings.base(recipe), settings, 1 / 2, 3 / 4)
    cells = over(a=plane.rates, p=plane.masses)
    varied = ({"regulariser": smoothing_to(cell["p"]), "noise": noise(cell["a"])} for cell in cells)
    return each_seed(settings, base, zip(varied, cells, strict=True))
