"""What the distillation study trains on MNIST, and what it reads from each run."""

from __future__ import annotations

from typing import Any

from softtargets.recipes import (
    MLP,
    MNIST,
    SGD,
    CrossEntropy,
    Distillation,
    LabelSmoothing,
    Linear,
    Recipe,
    Regulariser,
    Shift,
)
from softtargets.runs import Run
from softtargets.studies.study import Settings, Trial

# The figure: strengths of smoothing, and temperatures of a teacher with hard targets.
ALPHAS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 12.0, 16.0)

# The table: a teacher with hard targets and dropout, one with smoothing and without, and how much of a student's
# loss is their logits.
TABLE_ALPHAS = (0.0, 0.1)
DROPOUT = 0.5
BETA = 0.6
# Squared differences to a hard teacher's logits are large at first: at a learning rate of 1 the students' weights
# are no longer numbers after some ten steps. With gradients clipped to this norm they learn.
CLIP = 1.0

# Momentum and dampening of 0.9 are the paper's gradient smoothing: 0.9 of the last gradient and 0.1 of this one.
_TRAINING: dict[str, Any] = {
    "data": MNIST(),
    "optimiser": SGD(lr=1.0, momentum=0.9, dampening=0.9, rates=(("head.*", 0.1),)),
    "schedule": Linear(),
    "epochs": 100,
    "batch": 128,
    "precision": "bf16",
}

TEACHER = Recipe(model=MLP(hidden=(1200, 1200), init_std=0.03), augmentation=(Shift(pixels=2),), **_TRAINING)
STUDENT = Recipe(model=MLP(hidden=(800, 800), init_std=0.03), **_TRAINING)


def trials(settings: Settings) -> list[Trial]:
    """The four curves of the figure, then the four rows of the table, for each seed.

    The student of the hard teacher at temperature 1 is on two curves, and is one trial.
    """
    teacher, student = settings.base(TEACHER), settings.base(STUDENT)
    return [
        trial
        for seed in range(settings.seeds)
        for trial in (*_figure(teacher, student, seed), *_table(teacher, student, seed))
    ]


def _figure(teacher: Recipe, student: Recipe, seed: int) -> list[Trial]:
    grid = []
    for alpha in ALPHAS:
        taught = _vary(teacher, smoothing(alpha), seed)
        grid.append(Trial(taught, {"role": "teacher", "alpha": alpha}))
        grid.append(Trial(_vary(student, smoothing(alpha), seed), {"role": "baseline", "alpha": alpha}))
        for temperature in TEMPERATURES if alpha == 0 else TEMPERATURES[:1]:
            soft = Distillation(teacher=taught, temperature=temperature)
            labels = {"role": "student", "alpha": alpha, "temperature": temperature}
            grid.append(Trial(_vary(student, soft, seed), labels))
    return grid


def _table(teacher: Recipe, student: Recipe, seed: int) -> list[Trial]:
    grid = []
    for alpha in TABLE_ALPHAS:
        taught = _vary(teacher, smoothing(alpha), seed)
        if alpha == 0:
            taught = taught.replace({"model.dropout": DROPOUT})
        grid.append(Trial(taught, {"role": "table teacher", "alpha": alpha}))
        logits = Distillation(teacher=taught, match="logits", beta=BETA)
        learns = _vary(student, logits, seed).replace({"clip": student.clip or CLIP})
        grid.append(Trial(learns, {"role": "table student", "alpha": alpha}))
    return grid


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy and error on the test digits after the last epoch."""
    accuracy = float(run.summary["test_accuracy"])
    measured = {"accuracy": accuracy, "error": 1 - accuracy}
    if trial.labels["role"] in ("teacher", "baseline"):
        measured["gamma"] = float(trial.labels["alpha"])
    return measured


def smoothing(alpha: float) -> Regulariser:
    """Label smoothing; of strength 0 it is plain cross-entropy."""
    return LabelSmoothing(alpha=alpha) if alpha else CrossEntropy()


def _vary(recipe: Recipe, regulariser: Regulariser, seed: int) -> Recipe:
    return recipe.replace({"regulariser": regulariser, "seed": seed})
