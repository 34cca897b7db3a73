"""What is trained for figure 6, and what is read from the looks that the probe took."""

from __future__ import annotations

from softtargets.information import Evolution, evolution
from softtargets.recipes import Information, Recipe, Step
from softtargets.runs import Run
from softtargets.studies.grids import each_seed, smoothing, stretched
from softtargets.studies.measures import accuracy
from softtargets.studies.protocols import FCN_TEACHER, RESNET56_CIFAR10, shrunk
from softtargets.studies.study import Settings, Trial

# What is compared: the mildest smoothing of figure 5, whose teachers are these same runs. The last panel has them all.
COMPARED = (0.0, 0.15)
ALPHAS = {"small": COMPARED, "full": (*COMPARED, 0.3, 0.45, 0.6, 0.75)}

# Airplane and dog, 300 training images of each, 5 draws, every 4,000 steps (appendix A.2): the defaults of the probe.
TEACHER = RESNET56_CIFAR10.replace({"probes": (Information(), Information(inner="others"))})
BASES: dict[str, Recipe] = {
    # Digits, on which a processor measures in seconds: a 0 against a 5.
    "small": shrunk(
        FCN_TEACHER,
        images=2000,
        epochs=24,
        model__hidden=(128, 128),
        data__validation=1000,
        probes=(
            Information(every=16, examples=100),
            Information(every=16, examples=100, inner="others"),
        ),
    ),
    "full": TEACHER,
}


def trials(settings: Settings) -> list[Trial]:
    """One training for each strength and seed; rates drop at a half and three quarters of it."""
    size = settings.size or "full"
    net = stretched(settings.base(BASES[size]), settings, 1 / 2, 3 / 4)
    cells = [({"regulariser": smoothing(alpha)}, {"alpha": alpha}) for alpha in ALPHAS[size]]
    return each_seed(settings, net, cells)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Information at the end and on average over the looks before the first drop of the rate, and accuracies."""
    measured = {
        "validation_accuracy": accuracy(run.predictions("validation")),
        "accuracy": accuracy(run.predictions("test")),
    }
    for inner, prefix in (("all", ""), ("others", "others_")):
        course = evolution(run.history(), inner=inner)  # type: ignore[arg-type]
        found = read(course, first_drop(trial.recipe))
        measured |= {f"{prefix}{name}": value for name, value in found.items()}
    return measured


def first_drop(recipe: Recipe) -> float:
    """The share of a training at which its rate drops for the first time; a half where it does not drop in steps.

    >>> round(first_drop(TEACHER) * 205 * 313)
    31926
    """
    schedule = recipe.schedule
    if isinstance(schedule, Step) and schedule.unit == "epoch" and schedule.milestones and recipe.epochs:
        return schedule.milestones[0] / recipe.epochs
    return 1 / 2


def read(course: Evolution, drop: float = 1 / 2) -> dict[str, float]:
    """What the claims are about; no look is chosen by what it found.

    drop: the share of the training at which the rate first drops. A look just behind it, such as the one at step 32,000
    of the paper's 64,165, is of another rate and not among the early ones.

    >>> course = Evolution(steps=(10, 20, 30, 40), nats=(1.0, 2.0, 1.5, 1.0), standard_error=(0.1,) * 4, bound=6.4)
    >>> read(course)
    {'information': 1.0, 'early': 1.5, 'fall': 0.5, 'bound': 6.4}
    """
    early = [
        nats for step, nats in zip(course.steps, course.nats, strict=True) if step <= drop * course.steps[-1]
    ]
    before = sum(early) / len(early) if early else course.nats[0]
    final = course.nats[-1]
    return {"information": final, "early": before, "fall": before - final, "bound": course.bound}
