"""What the grids of studies are made of: strengths of smoothing, rates of noise, schedules of any length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from softtargets.recipes import Clean, CrossEntropy, LabelSmoothing, Recipe, Step, Symmetric
from softtargets.studies.study import Settings, Trial

# Fields of recipes that grids over these vary, and that users therefore may not set.
SMOOTHING_AXES = ("regulariser", "regulariser.name", "regulariser.alpha")
NOISE_AXES = ("noise", "noise.name", "noise.rate", "noise.type")


def trial(recipe: Recipe, changes: Mapping[str, Any], **labels: Any) -> Trial:
    """A cell of a grid: a base recipe with what is varied, and the study's names for that."""
    return Trial(recipe.replace(changes), labels)


def each_seed(
    settings: Settings, base: Recipe, cells: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> list[Trial]:
    """All cells of a grid, as what is varied and the study's names for it, for each seed; with the study's size."""
    size = {"size": settings.size} if settings.size else {}
    grid = list(cells)
    return [
        trial(base, {**varied, "seed": seed}, **size, **labels)
        for seed in range(settings.seeds)
        for varied, labels in grid
    ]


def smoothing(alpha: float, spread: Literal["all", "others"] = "all") -> LabelSmoothing | CrossEntropy:
    """Label smoothing; of strength 0 it is plain cross-entropy.

    >>> smoothing(0.2)
    LabelSmoothing(alpha=0.2)
    >>> smoothing(0.0)
    CrossEntropy()
    """
    return LabelSmoothing(alpha=alpha, spread=spread) if alpha else CrossEntropy()


def smoothing_to(p: float) -> LabelSmoothing | CrossEntropy:
    """Mass p on the label and the rest on the others, in equal parts.

    >>> smoothing_to(0.7)
    LabelSmoothing(alpha=0.3, spread='others')
    """
    return smoothing(_rest(p), "others")


def noise(a: float) -> Symmetric | Clean:
    """Labels that are right with probability a.

    >>> noise(0.7)
    Symmetric(rate=0.3)
    """
    return Symmetric(rate=_rest(a)) if a < 1 else Clean()


def stretched(recipe: Recipe, settings: Settings, *shares: float) -> Recipe:
    """With rates that drop at these shares of the training, however long a user makes it; a user's schedule stays."""
    chosen = any(key.split(".")[0] == "schedule" for key in settings.changes)
    if chosen or recipe.epochs is None or not isinstance(recipe.schedule, Step):
        return recipe
    drops = {max(int(share * recipe.epochs), 1) for share in shares}
    return recipe.replace({"schedule.milestones": tuple(sorted(drops))})


def _rest(share: float) -> float:
    # 1 - 0.9 is 0.09999999999999998; recipes are named by their numbers, so these are the ones that people write.
    return round(1 - share, 6)
