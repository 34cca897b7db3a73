"""The study of the theory trains nothing; its grids are those of the figures."""

from __future__ import annotations

import math

import numpy as np

from softtargets.exceptions import StudyError
from softtargets.runs import Run
from softtargets.studies.study import Settings, Trial

KINDS = ("alpha", "beta", "gamma")

# Figures 1 and 2 are for two classes. The paper does not print the numbers of classes of figures 3 and 4.
PLANE = np.arange(1, 50) / 50
RATES = np.arange(1, 200) / 200
MANY = (2, 3, 10, 100)
LIMIT = (*MANY, math.inf)
JUMPING = (3, 10, 100, 1000)


def trials(settings: Settings) -> list[Trial]:
    """None, and so nothing about them can be changed."""
    if settings.changes:
        raise StudyError(
            f"--set {next(iter(settings.changes))}: the study 'chen-theory' trains nothing, "
            "so it has no recipe to change"
        )
    return []


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Never asked, since there is no run."""
    raise StudyError("the study 'chen-theory' has no runs to measure")
