"""What is trained for the statements in the text: three teachers on MNIST, and networks on CIFAR-100 to reuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.studies.grids import SMOOTHING_AXES, each_seed, smoothing
from softtargets.studies.measures import accuracy
from softtargets.studies.muller_images import FULL, SMALL, trials_of
from softtargets.studies.protocols import FCN_TEACHER, shrunk
from softtargets.studies.study import Settings, Trial

AXES = ("seed", "model.dropout", *SMOOTHING_AXES)
# The teachers are those of mnist-distillation: its runs serve here too.
TEACHERS: dict[str, dict[str, Any]] = {
    "dropout": {"regulariser": smoothing(0.0), "model.dropout": 0.5},
    "smoothing": {"regulariser": smoothing(0.1)},
    "neither": {"regulariser": smoothing(0.0)},
}
RECIPES: dict[str, Recipe] = {
    SMALL: shrunk(FCN_TEACHER, images=3000, epochs=20, model__hidden=(128, 128), optimiser__lr=0.5),
    FULL: FCN_TEACHER,
}
# The accuracy to be reached, fixed before looking: a round number that all teachers pass, well before their end.
GOALS = {SMALL: 0.80, FULL: 0.99}
ALPHAS = (0.0, 0.1)


def trials(settings: Settings) -> list[Trial]:
    """Three teachers and two networks, for each seed."""
    base = settings.base(RECIPES[settings.size])
    cells: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] = (
        (varied, {"network": "fcn", "targets": name}) for name, varied in TEACHERS.items()
    )
    return [*each_seed(settings, base, cells), *trials_of(settings, {"cifar100": ALPHAS})]


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy at the end; of a teacher, the epochs until it first reached the goal."""
    found = {"accuracy": accuracy(run.predictions("test"))}
    if trial.labels["network"] == "fcn":
        found["epochs_to_goal"] = epochs_to(run.history(), GOALS[trial.labels["size"]])
    return found


def epochs_to(history: Iterable[Mapping[str, Any]], goal: float) -> float:
    """The first epoch with this test accuracy, of rows for every epoch; where none has it, one more than there are.

    >>> epochs_to([{"epoch": 1, "test_accuracy": 0.8}, {"epoch": 2, "test_accuracy": 0.95}], 0.9)
    2.0
    """
    rows = list(history)
    reached = (float(row["epoch"]) for row in rows if row["test_accuracy"] >= goal)
    return next(reached, 1.0 + max(float(row["epoch"]) for row in rows))
