"""Teachers trained in five ways, and a student of each at two temperatures, on digits and on CIFAR-10."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softtargets.recipes import LABO, CrossEntropy, Distillation, LabelSmoothing, Recipe, Regulariser
from softtargets.runs import Run
from softtargets.studies.grids import SMOOTHING_AXES, stretched, trial
from softtargets.studies.measures import accuracy
from softtargets.studies.muller_figure_6.grid import TEACHER
from softtargets.studies.protocols import ALEXNET_CIFAR10, FCN_STUDENT, FCN_TEACHER, shrunk
from softtargets.studies.study import Settings, Trial

AXES = ("seed", "model", "model.name", "model.hidden", "augmentation", "probes", *SMOOTHING_AXES)
TEMPERATURES = (1.0, 4.0)
# LABO's warm-up is uniform: 5,000 of some 78,000 steps, the paper's for its smaller tasks. It prints none for images.
WARM_UP = 0.064
# Digits, of which a processor trains thousands, have more seeds than CIFAR-10.
SEEDS, CIFAR_SEEDS = 5, 2


@dataclass(frozen=True)
class Pair:
    """A teacher and a student network with their training.

    smoothing:  alpha of the teacher with label smoothing: one that other studies train too.
    methods:    how teachers are trained.
    """

    teacher: Recipe
    student: Recipe
    smoothing: float
    methods: tuple[str, ...]

    def regulariser(self, method: str) -> Regulariser:
        """What a teacher is trained with.

        >>> reversed_ = PAIRS["full"]["mnist"].regulariser("LABO, reversed")
        >>> reversed_.name, reversed_.reading, reversed_.warmup_steps
        ('labo', 'reversed', 3002)
        """
        if method == "hard targets":
            return CrossEntropy()
        if method == "label smoothing":
            return LabelSmoothing(alpha=self.smoothing)
        return LABO(warmup_steps=warm_up(self.teacher), **_READINGS[method])  # type: ignore[arg-type]


# As eq. 16 says, where a confident model moves nearly all mass; with a constant share; and the other way round.
_READINGS: dict[str, dict[str, float | str]] = {
    "LABO": {},
    "LABO, fixed alpha": {"alpha": 0.1},
    "LABO, reversed": {"reading": "reversed"},
}
METHODS = ("hard targets", "label smoothing", *_READINGS)
PAIRS: dict[str, dict[str, Pair]] = {
    "small": {
        "mnist": Pair(
            shrunk(FCN_TEACHER, images=2000, epochs=20, model__hidden=(128, 128)),
            shrunk(FCN_STUDENT, images=2000, epochs=20, model__hidden=(64, 64)),
            0.1,
            METHODS,
        )
    },
    "full": {
        "mnist": Pair(FCN_TEACHER, FCN_STUDENT, 0.1, METHODS),
        # Teachers with hard targets and with 0.15 are those of figure 5, and so are three of their students.
        "cifar10": Pair(
            TEACHER, ALEXNET_CIFAR10, 0.15, ("hard targets", "label smoothing", "LABO", "LABO, reversed")
        ),
    },
}


def warm_up(recipe: Recipe) -> int:
    """Steps of the warm-up of a training on all of its data's examples."""
    examples = recipe.data.limit or (recipe.data.training_examples or 0) - recipe.data.validation
    return round(WARM_UP * (recipe.epochs or 1) * -(-examples // recipe.batch))


def trials(settings: Settings) -> list[Trial]:
    """For each pair and seed a student alone, the teachers, and a student of each at every temperature."""
    size = settings.size or "full"
    grid = []
    for data, pair in PAIRS[size].items():
        own = Pair(
            stretched(settings.base(pair.teacher), settings, 1 / 2, 3 / 4),
            stretched(settings.base(pair.student), settings, 1 / 3, 2 / 3),
            pair.smoothing,
            pair.methods,
        )
        for seed in range(settings.seeds if data == "mnist" else min(settings.seeds, CIFAR_SEEDS)):
            grid += [Trial(t.recipe, {"size": size, "data": data, **t.labels}) for t in _of_seed(own, seed)]
    return grid


def _of_seed(pair: Pair, seed: int) -> Iterator[Trial]:
    yield trial(pair.student, {"seed": seed}, role="alone")
    for method in pair.methods:
        varied = {"regulariser": pair.regulariser(method), "seed": seed}
        taught = trial(pair.teacher, varied, role="teacher", method=method)
        yield taught
        for t in TEMPERATURES:
            soft = Distillation(teacher=taught.recipe, temperature=t)
            if pair.student.augmentation:  # asked once, about images without augmentation
                soft = Distillation(teacher=taught.recipe, temperature=t, view="stored")
            learning = {"regulariser": soft, "seed": seed}
            yield trial(pair.student, learning, role="student", method=method, temperature=t)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Test accuracy and error after the last epoch."""
    correct = accuracy(run.predictions("test"))
    return {"accuracy": correct, "error": 1 - correct}
