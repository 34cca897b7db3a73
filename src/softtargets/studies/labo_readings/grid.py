"""What the study of readings trains: hard targets, label smoothing, and LABO as each reading has it."""

from __future__ import annotations

from softtargets.studies.grids import each_seed
from softtargets.studies.labo.protocol import (
    CLASSES,
    READINGS,
    base,
    method_cells,
    reading_cells,
    settings_of,
)
from softtargets.studies.study import Settings, Trial
from softtargets.theory import labo_rests

# In the order of tables and figures: methods, then readings of LABO.
ROWS: tuple[dict[str, str], ...] = (
    {"method": "hard", "reading": ""},
    {"method": "ls", "reading": ""},
    *({"method": "labo", "reading": name} for name in READINGS),
)
# The smoothing of label smoothing.
SMOOTHING = 0.1


def trials(settings: Settings) -> list[Trial]:
    """For the first setting of table 3 each method and reading, for each seed."""
    data, model = settings_of(settings.size)[0]
    recipe = base(settings, data, model)
    cells = [*method_cells(recipe, settings.size, ("hard", "ls")), *reading_cells(recipe)]
    named = [(varied, {"data": data, "model": model, "reading": "", **labels}) for varied, labels in cells]
    return each_seed(settings, recipe, named)


def predicted(method: str, reading: str, classes: int, tau: float = 1.25) -> float:
    """The probability of the label at which training rests, if all wrong classes are alike; 1 where there is no rest.

    >>> round(predicted("labo", "literal", 100), 3), predicted("labo", "reversed", 100), predicted("ls", "", 10)
    (0.519, 1.0, 0.91)
    """
    if method == "ls":
        return 1 - SMOOTHING + SMOOTHING / classes
    if method != "labo":
        return 1.0
    # The warm-up is over long before.
    options = {key: value for key, value in READINGS[reading].items() if key != "warmup"}
    rests = labo_rests(classes, tau, **options)
    return rests[0].p if rests else 1.0


def classes_of(data: str) -> int:
    """How many classes a dataset has."""
    return CLASSES[data]
