"""What is trained for figure 5: teachers, students alone, their students, and a pilot of what teachers are shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from softtargets.recipes import Distillation, Recipe, Shift
from softtargets.runs import Run
from softtargets.studies.distilling import Scenario
from softtargets.studies.grids import SMOOTHING_AXES, smoothing, stretched, trial
from softtargets.studies.measures import accuracy
from softtargets.studies.muller_figure_6.grid import TEACHER
from softtargets.studies.protocols import ALEXNET_CIFAR10, FCN_STUDENT, FCN_TEACHER, shrunk
from softtargets.studies.results import over
from softtargets.studies.study import Settings, Trial

View = Literal["student", "teacher", "stored"]

AXES = ("seed", "model", "model.name", "augmentation", "probes", "regulariser.view", *SMOOTHING_AXES)

# What the teachers of the curves are shown, and what the pilot compares. Stored logits cost nothing: a teacher is asked
# about 40,000 images once, not about 50 million views of them.
VIEW: View = "stored"
VIEWS: tuple[View, ...] = ("student", "teacher", "stored")
# Students of the pilot have seeds that judge nothing, and the teachers of the first seed.
PILOT_SEEDS = (100, 101)


@dataclass(frozen=True)
class Protocol:
    """One size of the study.

    pilot:        teachers whose students are trained with every view, as pairs of alpha and temperature.
    pilot_epochs: how long these students are trained.
    """

    teacher: Recipe
    student: Recipe
    alphas: tuple[float, ...]
    temperatures: tuple[float, ...]
    pilot: tuple[tuple[float, float], ...]
    pilot_epochs: int

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """M1 to M4, as the points that lie on them; M3 and M4 begin with the same student."""
        hottest = self.temperatures[-1]
        return (
            Scenario("M1", "teacher, label smoothing", over(role=["teacher"], alpha=self.alphas)),
            Scenario("M2", "student alone, label smoothing", over(role=["baseline"], alpha=self.alphas)),
            Scenario(
                "M3",
                f"student of the hard teacher, T = 1 to {hottest:g}",
                over(role=["student"], alpha=[0.0], temperature=self.temperatures),
            ),
            Scenario(
                "M4",
                "student of a smoothed teacher, T = 1",
                over(role=["student"], alpha=self.alphas, temperature=[1.0]),
            ),
        )


PROTOCOLS = {
    # Digits and fully connected networks. The student shifts by one pixel and the teacher by two, so that views differ.
    "small": Protocol(
        teacher=shrunk(FCN_TEACHER, images=2000, epochs=30, model__hidden=(128, 128), data__validation=1000),
        student=shrunk(
            FCN_STUDENT,
            images=2000,
            epochs=30,
            model__hidden=(64, 64),
            data__validation=1000,
            augmentation=(Shift(pixels=1),),
        ),
        alphas=(0.0, 0.3, 0.6),
        temperatures=(1.0, 4.0, 12.0),
        pilot=((0.0, 4.0), (0.3, 1.0)),
        pilot_epochs=30,
    ),
    # Müller et al., appendix A.1 and A.2. The pilot is a twentieth as long, since live teachers are what is slow.
    "full": Protocol(
        teacher=TEACHER,
        student=ALEXNET_CIFAR10,
        alphas=(0.0, 0.15, 0.3, 0.45, 0.6, 0.75),
        temperatures=(1.0, 2.0, 3.0, 4.0, 8.0, 12.0, 16.0),
        pilot=((0.0, 4.0), (0.3, 1.0)),
        pilot_epochs=62,
    ),
}


def trials(settings: Settings) -> list[Trial]:
    """The pilot, then for each seed teachers, students alone and their students."""
    size = settings.size or "full"
    protocol = PROTOCOLS[size]
    teacher = stretched(settings.base(protocol.teacher), settings, 1 / 2, 3 / 4)
    student = stretched(settings.base(protocol.student), settings, 1 / 3, 2 / 3)
    grid = [*_pilot(protocol, settings, teacher, student)]
    for seed in range(settings.seeds):
        grid += _curves(protocol, teacher, student, seed)
    return [Trial(each.recipe, {"size": size, **each.labels}) for each in grid]


def _curves(protocol: Protocol, teacher: Recipe, student: Recipe, seed: int) -> Iterator[Trial]:
    for alpha in protocol.alphas:
        varied = {"regulariser": smoothing(alpha), "seed": seed}
        taught = trial(teacher, varied, role="teacher", alpha=alpha)
        yield taught
        yield trial(student, varied, role="baseline", alpha=alpha)
        for t in protocol.temperatures if alpha == 0 else (1.0,):
            learning = _learning(taught.recipe, t, VIEW, seed)
            yield trial(student, learning, role="student", alpha=alpha, temperature=t)


def _pilot(protocol: Protocol, settings: Settings, teacher: Recipe, student: Recipe) -> Iterator[Trial]:
    short = stretched(
        student.replace({"epochs": min(protocol.pilot_epochs, student.epochs or 1)}), settings, 1 / 3, 2 / 3
    )
    for alpha, t in protocol.pilot:
        taught = teacher.replace({"regulariser": smoothing(alpha), "seed": 0})
        for view in VIEWS:
            for seed in PILOT_SEEDS:
                labels = {"role": "pilot", "alpha": alpha, "temperature": t, "view": view}
                yield trial(short, _learning(taught, t, view, seed), **labels)


def _learning(teacher: Recipe, temperature: float, view: View, seed: int) -> dict[str, Any]:
    return {"regulariser": Distillation(teacher=teacher, temperature=temperature, view=view), "seed": seed}


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy after the last epoch on the held-out images, as the paper shows it, and on the test set."""
    measured = {
        "accuracy_validation": accuracy(run.predictions("validation")),
        "accuracy": accuracy(run.predictions("test")),
    }
    if trial.labels["role"] in ("teacher", "baseline"):
        measured["gamma"] = float(trial.labels["alpha"])
    return measured
