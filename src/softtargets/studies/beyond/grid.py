"""The networks of the replication's tables 2 and 3 as far as their data is at hand, with five strengths of smoothing.

Recipes are those of the studies of these tables, whose runs are used again. At full size,
with three seeds, there are 75 runs of 1.3 billion images in all: 30 of FCNs (6 million each), 15 of AlexNet (62
million), 15 of ResNet-56 on CIFAR-10 (10 million) and 15 on CIFAR-100 (8 million).
"""

from __future__ import annotations

from softtargets.recipes import Recipe, Step
from softtargets.studies.grids import SMOOTHING_AXES, each_seed, smoothing, stretched
from softtargets.studies.results import Results, Row, over
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Settings, Trial
from softtargets.studies.wagner.networks import NETWORKS

AXES = ("seed", "data", "data.name", "model", "model.name", *SMOOTHING_AXES)
# Seeds that decide, of every network.
SEEDS = 3

# Without smoothing; with that of the papers' titles; with the strongest one.
HARD, ALPHA, STRONG = 0.0, 0.1, 0.3
# By size. Claims need three of them, so these come first.
ALPHAS = {"small": (HARD, ALPHA, STRONG), "full": (HARD, ALPHA, STRONG, 0.05, 0.15)}

# What pages call the networks.
NAMES = {
    "mnist-fcn": "FCN, MNIST",
    "fmnist-fcn": "FCN, Fashion-MNIST",
    "cifar10-alexnet": "AlexNet, CIFAR-10",
    "cifar10-resnet56": "ResNet-56, CIFAR-10",
    "cifar100-resnet56": "ResNet-56, CIFAR-100",
}
SIZES: dict[str, dict[str, Recipe]] = {
    "small": {key: NETWORKS[key].small for key in NAMES},
    "full": {key: NETWORKS[key].full for key in NAMES},
}


def trials(settings: Settings) -> list[Trial]:
    """Every network with every smoothing, for each seed."""
    grid: list[Trial] = []
    for key, recipe in SIZES[settings.size].items():
        cells = [
            ({"regulariser": smoothing(alpha)}, {"network": key, "alpha": alpha})
            for alpha in ALPHAS[settings.size]
        ]
        grid += each_seed(settings, _fitted(recipe, settings), cells)
    return grid


def _fitted(recipe: Recipe, settings: Settings) -> Recipe:
    """With the user's changes; rates drop at the same shares of a longer or shorter training."""
    changed = settings.base(recipe)
    if changed.epochs == recipe.epochs or not isinstance(recipe.schedule, Step) or not recipe.epochs:
        return changed
    return stretched(changed, settings, *(place / recipe.epochs for place in recipe.schedule.milestones))


def networks_of(results: Results) -> dict[str, str]:
    """The networks of the size that was trained with their names, whether or not all of them have been."""
    return {key: NAMES[key] for key in SIZES[size_of(results)]}


def alphas_of(results: Results) -> tuple[float, ...]:
    """The strengths of smoothing of the size that was trained, rising."""
    return tuple(sorted(ALPHAS[size_of(results)]))


def rows_of(results: Results, *measures: str) -> list[Row]:
    """A row for each network and smoothing of which there are runs, with each measure over seeds."""
    names = networks_of(results)
    cells = [cell for cell in over(network=names, alpha=alphas_of(results)) if results.where(**cell).outcomes]
    return [{"name": names[row["network"]], **row} for row in results.rows(cells, *measures)]
