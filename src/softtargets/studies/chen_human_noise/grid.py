"""What the study of human noise trains: labels that people gave, and labels as often wrong at random."""

from __future__ import annotations

from typing import Any

from softtargets.recipes import Recipe, Symmetric
from softtargets.studies import chen_plane
from softtargets.studies.chen_cifar10.grid import PAPER, QUICK
from softtargets.studies.grids import smoothing_to, trial
from softtargets.studies.study import Settings, Trial

AXES = ("data.labels", *chen_plane.AXES)

# Of all 50,000 labels of CIFAR-10N so many are wrong; what of a part of them is wrong is counted on each run.
WRONG = {"aggregate": 0.0901, "random1": 0.17234, "worse": 0.40208}
SOURCES = ("human", "symmetric")

SIZES: dict[str, tuple[tuple[str, ...], tuple[float, ...], Recipe]] = {
    "tiny": (("aggregate", "worse"), (0.5, 0.65, 0.8, 0.9, 1.0), QUICK),
    "full": (("aggregate", "random1", "worse"), (0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0), PAPER),
}


def trials(settings: Settings) -> list[Trial]:
    """For each set of human labels, its double with symmetric noise, each p and each seed."""
    kinds, masses, recipe = SIZES[settings.size]
    base, size = settings.base(recipe), settings.size
    grid = []
    for seed in range(settings.seeds):
        for kind in kinds:
            wrong: tuple[dict[str, Any], ...] = (
                {"data.labels": kind},
                {"noise": Symmetric(rate=WRONG[kind])},
            )
            for p in masses:
                for source, change in zip(SOURCES, wrong, strict=True):
                    varied = {"regulariser": smoothing_to(p), "seed": seed, **change}
                    grid.append(trial(base, varied, size=size, labels=kind, source=source, p=p))
    return grid
