"""The grid: a clean rate for each column, a smoothing for each row, a model for each seed; and which p is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from softtargets.claims import Sample
from softtargets.recipes import Recipe
from softtargets.studies.grids import NOISE_AXES, SMOOTHING_AXES, each_seed, noise, smoothing_to, stretched
from softtargets.studies.results import Results, over
from softtargets.studies.study import Settings, Trial

AXES = ("seed", *NOISE_AXES, *SMOOTHING_AXES, "regulariser.spread")

# Up to this p predictions are compared with what is measured: towards 1 they have no bounds.
AWAY = 0.9
# Measures that are good when they are high; the others are losses.
_HIGH = ("accuracy", "early_accuracy")


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


def axes_of(results: Results) -> tuple[list[float], list[float]]:
    """The clean rates a and the masses p on the label of which there are runs, both rising."""
    return sorted(results.values("a")), sorted(results.values("p"))


def plane_to_judge(results: Results, scope: Scope | None) -> Plane:
    """The whole grid of the size that was trained: what claims are about, whether or not all of it has been.

    Without a scope, or without runs, it is what there are runs of.
    """
    sizes = [outcome.trial.labels.get("size") for outcome in results.outcomes[:1]]
    if scope is not None and sizes and sizes[0] in scope.grids:
        return scope.grids[sizes[0]][0]
    rates, masses = axes_of(results)
    return Plane(tuple(rates), tuple(masses))


def plane_of(results: Results, measure: str) -> dict[tuple[float, float], float]:
    """One measure by (a, p), for the runs of one seed; cells without it are left out."""
    cells = results.cells("a", "p")
    return {(a, p): found[measure] for (a, p), found in cells.items() if measure in found}


def best_p(results: Results, measure: str, a: float) -> float:
    """The best p for one seed and clean rate; the larger of two that are as good. A ValueError where there is none."""
    return best_of(
        {p: value for (rate, p), value in plane_of(results, measure).items() if rate == a}, measure
    )


def best_of(row: Mapping[float, float], measure: str) -> float:
    """The p with the best value; the larger of two that are as good. A ValueError where there is none.

    >>> best_of({0.5: 0.9, 0.8: 0.9, 1.0: 0.7}, "accuracy")
    0.8
    """
    sign = -1 if measure in _HIGH else 1
    return min(row, key=lambda p: (sign * row[p], -p))


def best_ps(results: Results, measure: str, a: float) -> Sample:
    """The best p of each seed."""
    return results.each_seed(lambda own: best_p(own, measure, a))
