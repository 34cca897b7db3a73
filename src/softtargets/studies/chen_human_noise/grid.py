"""What the study of human noise trains: labels that people gave, and labels as often wrong at random."""

from __future__ import annotations

from itertools import product

from softtargets.recipes import Recipe, Symmetric
from softtargets.studies import chen_plane
from softtargets.studies.chen_cifar10 import PAPER, QUICK
from softtargets.studies.grids import each_seed, smoothing_to
from softtargets.studies.results import Results
from softtargets.studies.study import Settings, Trial

AXES = ("data.labels", *chen_plane.AXES)

# Of all 50,000 labels of CIFAR-10N so many are wrong; what of a part of them is wrong is counted on each run.
WRONG = {"aggregate": 0.0901, "random1": 0.17234, "worse": 0.40208}
SOURCES = ("human", "symmetric")

# The full one has, with three seeds, 126 runs of 5 million images, its core 60.
SIZES: dict[str, tuple[tuple[str, ...], tuple[float, ...], Recipe]] = {
    "tiny": (("aggregate", "worse"), (0.5, 0.65, 0.8, 0.9, 1.0), QUICK),
    "core": (("aggregate", "worse"), (0.5, 0.65, 0.8, 0.9, 1.0), PAPER),
    "full": (("aggregate", "random1", "worse"), (0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0), PAPER),
}


def kinds_and_masses(results: Results) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Of the size that was trained: what claims are about, whether or not all of it has been."""
    size = next((outcome.trial.labels.get("size") for outcome in results.outcomes), None)
    return SIZES[size][:2] if size in SIZES else ((), ())


def trials(settings: Settings) -> list[Trial]:
    """For each set of human labels, its double with symmetric noise, each p and each seed."""
    kinds, masses, recipe = SIZES[settings.size]
    cells = []
    for kind, p, source in product(kinds, masses, SOURCES):
        wrong = {"data.labels": kind} if source == "human" else {"noise": Symmetric(rate=WRONG[kind])}
        labels = {"labels": kind, "source": source, "p": p}
        cells.append(({"regulariser": smoothing_to(p), **wrong}, labels))
    return each_seed(settings, settings.base(recipe), cells)
