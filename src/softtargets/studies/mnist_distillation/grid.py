"""What the distillation study trains on MNIST, and what it reads from each run."""

from __future__ import annotations

from softtargets.recipes import Distillation, Recipe
from softtargets.runs import Run
from softtargets.studies.grids import SMOOTHING_AXES, smoothing, trial
from softtargets.studies.measures import accuracy
from softtargets.studies.protocols import FCN_STUDENT, FCN_TEACHER
from softtargets.studies.study import Settings, Trial

AXES = ("seed", "model", "model.name", "model.hidden", "model.dropout", "augmentation", *SMOOTHING_AXES)

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

TEACHER, STUDENT = FCN_TEACHER, FCN_STUDENT


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
        varied = {"regulariser": smoothing(alpha), "seed": seed}
        taught = trial(teacher, varied, role="teacher", alpha=alpha)
        grid += [taught, trial(student, varied, role="baseline", alpha=alpha)]
        for t in TEMPERATURES if alpha == 0 else TEMPERATURES[:1]:
            soft = {"regulariser": Distillation(teacher=taught.recipe, temperature=t), "seed": seed}
            grid.append(trial(student, soft, role="student", alpha=alpha, temperature=t))
    return grid


def _table(teacher: Recipe, student: Recipe, seed: int) -> list[Trial]:
    grid = []
    for alpha in TABLE_ALPHAS:
        dropout = {} if alpha else {"model.dropout": DROPOUT}
        varied = {"regulariser": smoothing(alpha), "seed": seed, **dropout}
        taught = trial(teacher, varied, role="table teacher", alpha=alpha)
        logits = Distillation(teacher=taught.recipe, match="logits", beta=BETA)
        learning = {"regulariser": logits, "seed": seed, "clip": student.clip or CLIP}
        grid += [taught, trial(student, learning, role="table student", alpha=alpha)]
    return grid


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy and error on the test digits after the last epoch."""
    correct = accuracy(run.predictions("test"))
    measured = {"accuracy": correct, "error": 1 - correct}
    if trial.labels["role"] in ("teacher", "baseline"):
        measured["gamma"] = float(trial.labels["alpha"])
    return measured
