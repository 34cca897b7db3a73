"""What is trained to match logits: two teachers, their students over rates and clips, and students alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from softtargets.recipes import Distillation, Recipe
from softtargets.runs import Run
from softtargets.studies.grids import SMOOTHING_AXES, smoothing, trial
from softtargets.studies.measures import accuracy
from softtargets.studies.protocols import FCN_STUDENT, FCN_TEACHER, shrunk
from softtargets.studies.results import Row, over
from softtargets.studies.study import Settings, Trial

AXES = (
    "seed", "model", "model.name", "model.hidden", "model.dropout", "augmentation", "optimiser.lr", "clip",
    *SMOOTHING_AXES,
)  # fmt: skip
# Hard targets with dropout and smoothing without, as in the papers' table; the share of the loss that is logits.
TEACHERS = (0.0, 0.1)
DROPOUT = 0.5
BETA = 0.6
# One setting for both teachers: the papers' rate with the clip that `mnist-distillation` adds, whose runs these are.
SHARED = (1.0, 1.0)


@dataclass(frozen=True)
class Plan:
    """One size of the study; a clip of None leaves gradients as they are."""

    teacher: Recipe
    student: Recipe
    rates: tuple[float, ...]
    clips: tuple[float | None, ...]

    def cells(self, alpha: float) -> list[Row]:
        """The students of one teacher."""
        return over(role=["student"], alpha=[alpha], lr=self.rates, clip=self.clips)

    @property
    def alone(self) -> list[Row]:
        """Students without a teacher."""
        return over(role=["alone"], lr=self.rates)


PLANS = {
    "small": Plan(
        shrunk(FCN_TEACHER, images=2000, epochs=8, model__hidden=(128, 128), batch=50),
        shrunk(FCN_STUDENT, images=2000, epochs=8, model__hidden=(64, 64), batch=50),
        rates=(0.3, 1.0),
        clips=(1.0, None),
    ),
    "full": Plan(
        FCN_TEACHER, FCN_STUDENT, rates=(0.03, 0.1, 0.3, 1.0, 3.0), clips=(0.1, 0.3, 1.0, 3.0, 10.0, None)
    ),
}


def trials(settings: Settings) -> list[Trial]:
    """For each seed both teachers, every student of both, and students alone over the rates."""
    size = settings.size or "full"
    plan = PLANS[size]
    teacher, student = settings.base(plan.teacher), settings.base(plan.student)
    return [
        Trial(each.recipe, {"size": size, **each.labels})
        for seed in range(settings.seeds)
        for each in _of_seed(plan, teacher, student, seed)
    ]


def _of_seed(plan: Plan, teacher: Recipe, student: Recipe, seed: int) -> Iterator[Trial]:
    for alpha in TEACHERS:
        dropout = {} if alpha else {"model.dropout": DROPOUT}
        taught = trial(
            teacher, {"regulariser": smoothing(alpha), "seed": seed, **dropout}, role="teacher", alpha=alpha
        )
        yield taught
        logits = Distillation(teacher=taught.recipe, match="logits", beta=BETA)
        for cell in plan.cells(alpha):
            varied = {"regulariser": logits, "seed": seed, "optimiser.lr": cell["lr"], "clip": cell["clip"]}
            yield trial(student, varied, **cell)
    for cell in plan.alone:
        yield trial(student, {"seed": seed, "optimiser.lr": cell["lr"]}, **cell)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Test error, and how large the logits are: their standard deviation within an example, on average."""
    test = run.predictions("test")
    correct = accuracy(test)
    return {
        "accuracy": correct,
        "error": 1 - correct,
        "logits": float(test.logits.double().std(dim=1, correction=0).mean()),
    }
