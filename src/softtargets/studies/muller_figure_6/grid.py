"""What is trained for figure 6, and what is read from the looks that the probe took."""

from __future__ import annotations

from softtargets.information import Evolution, evolution
from softtargets.recipes import Information, Recipe
from softtargets.runs import Run
from softtargets.studies.grids import each_seed, smoothing, stretched
from softtargets.studies.measures import accuracy
from softtargets.studies.protocols import FCN_TEACHER, RESNET56_CIFAR10, shrunk
from softtargets.studies.study import Settings, Trial

# What is compared, and for the last panel the strengths of figure 5, whose teachers are these same runs.
COMPARED = (0.0, 0.1)
FIGURE_5 = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75)
ALPHAS = {"small": COMPARED, "full": tuple(sorted({*COMPARED, *FIGURE_5}))}

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
        measured |= {f"{prefix}{name}": value for name, value in read(course).items()}
    return measured


def read(course: Evolution) -> dict[str, float]:
    """What the claims are about; no look is chosen by what it found.

    >>> course = Evolution(steps=(10, 20, 30, 40), nats=(1.0, 2.0, 1.5, 1.0), standard_error=(0.1,) * 4, bound=6.4)
    >>> read(course)
    {'information': 1.0, 'early': 1.5, 'fall': 0.5, 'bound': 6.4}
    """
    early = [
        nats for step, nats in zip(course.steps, course.nats, strict=True) if 2 * step <= course.steps[-1]
    ]
    before = sum(early) / len(early) if early else course.nats[0]
    final = course.nats[-1]
    return {"information": final, "early": before, "fall": before - final, "bound": course.bound}
