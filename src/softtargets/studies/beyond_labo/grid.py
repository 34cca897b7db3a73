"""What is trained beyond the paper: the first setting of table 3, and a small network on wrong labels."""

from __future__ import annotations

from softtargets.recipes import CNN, Recipe
from softtargets.studies.grids import each_seed, noise, stretched
from softtargets.studies.labo.protocol import (
    DROPS,
    Cell,
    base,
    method_cells,
    reading_cells,
    settings_of,
    training,
)
from softtargets.studies.study import Settings, Trial

READINGS = ("literal", "fixed", "reversed")
ROWS: tuple[dict[str, str], ...] = (
    {"method": "hard", "reading": ""},
    {"method": "ls", "reading": ""},
    *({"method": "labo", "reading": name} for name in READINGS),
)
# Shares of wrong labels, each as likely as any other class.
RATES = (0.0, 0.2, 0.4)

# The paper's training on CIFAR-10 for a network that a GPU trains by the dozen; without normalisation a rate of 0.1 is
# too high for it.
NOISY = training("cifar10", "resnet18").replace({"model": CNN(), "optimiser.lr": 0.01})


def trials(settings: Settings) -> list[Trial]:
    """Calibration: the first setting of table 3. Noise: each share of wrong labels. Each method, reading and seed."""
    data, model = settings_of(settings.size)[0]
    recipe = base(settings, data, model)
    clean = [
        (varied, {"part": "calibration", "data": data, "model": model, "rate": 0.0, **labels})
        for varied, labels in _methods(recipe, settings.size)
    ]
    if settings.size == "full":
        data, model = "cifar10", "cnn"
        noisy = stretched(settings.base(NOISY), settings, *DROPS)
    else:
        noisy = recipe
    wrong = [
        (
            {**varied, "noise": noise(1 - rate)},
            {"part": "noise", "data": data, "model": model, "rate": rate, **labels},
        )
        for rate in RATES
        for varied, labels in _methods(noisy, settings.size)
    ]
    return [*each_seed(settings, recipe, clean), *each_seed(settings, noisy, wrong)]


def _methods(recipe: Recipe, size: str) -> list[Cell]:
    methods = [
        (varied, {**labels, "reading": ""}) for varied, labels in method_cells(recipe, size, ("hard", "ls"))
    ]
    return [*methods, *reading_cells(recipe, READINGS)]
