"""What the studies of the replication train: networks of its tables, for each smoothing and seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from softtargets.recipes import Recipe, Step
from softtargets.studies.grids import SMOOTHING_AXES, smoothing, trial
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Settings, Trial
from softtargets.studies.wagner.networks import (
    ALPHAS,
    DEEP_SEEDS,
    FEW_ALPHAS,
    NETWORKS,
    SEEDS,
    SIZES,
    Network,
)

AXES = ("seed", "data", "data.name", "model", "model.name", *SMOOTHING_AXES)
FULL = "full"


def fitted(recipe: Recipe, settings: Settings) -> Recipe:
    """A base recipe with the user's changes; its rates drop at the same shares of a longer or shorter training."""
    changed = settings.base(recipe)
    chosen = any(key.split(".")[0] == "schedule" for key in settings.changes)
    if chosen or changed.epochs in (None, recipe.epochs) or not isinstance(recipe.schedule, Step):
        return changed
    assert recipe.epochs is not None
    assert changed.epochs is not None
    stretch = changed.epochs / recipe.epochs
    drops = {max(round(place * stretch), 1) for place in recipe.schedule.milestones}
    return changed.replace({"schedule.milestones": tuple(sorted(drops))})


def seeds_of(deep: bool, settings: Settings) -> range:
    """Deep networks have fewer seeds, unless a user asks for more than the study's own number.

    >>> len(seeds_of(True, Settings(5))), len(seeds_of(True, Settings(2))), len(seeds_of(True, Settings(10)))
    (3, 2, 10)
    """
    return range(min(settings.seeds, DEEP_SEEDS) if deep and settings.seeds <= SEEDS else settings.seeds)


def network_trials(
    settings: Settings, keys: Iterable[str] | None = None, alphas: Sequence[float] = ALPHAS
) -> list[Trial]:
    """Networks of the study's size (only those of `keys`, if there are any) for each alpha and seed."""
    wanted = set(NETWORKS if keys is None else keys)
    small = settings.size == "small"
    grid = []
    for network in SIZES[settings.size]:
        if network.key not in wanted:
            continue
        base = fitted(network.small if small else network.full, settings)
        for seed in seeds_of(network.deep, settings):
            for alpha in alphas:
                if small and alpha not in FEW_ALPHAS:
                    continue
                varied = {"regulariser": smoothing(alpha), "seed": seed}
                grid.append(trial(base, varied, size=settings.size, network=network.key, alpha=alpha))
    return grid


all_networks = partial(network_trials, keys=None)


def networks_of(results: Results, keys: Iterable[str] | None = None) -> tuple[Network, ...]:
    """The networks of the size that was trained, whether or not all of them have been."""
    wanted = set(NETWORKS if keys is None else keys)
    return tuple(network for network in SIZES[size_of(results)] if network.key in wanted)


def alphas_of(results: Results, alphas: Sequence[float] = ALPHAS) -> tuple[float, ...]:
    """The smoothings of the size that was trained."""
    return tuple(alpha for alpha in alphas if size_of(results) != "small" or alpha in FEW_ALPHAS)


def comparable(results: Results, network: Network) -> bool:
    """Whether printed numbers can be asked of what was trained: only of the printed training."""
    mine = results.where(network=network.key).outcomes
    return size_of(results) != "small" and all(network.is_printed(outcome.trial.recipe) for outcome in mine)
