"""What the study of logit smoothing trains: the same noise met in four ways."""

from __future__ import annotations

from softtargets.recipes import ForwardCorrection, LogitSmoothing, Recipe, Regulariser
from softtargets.studies.chen_mnist import PAPER, QUICK
from softtargets.studies.grids import each_seed, noise, smoothing_to
from softtargets.studies.results import Results
from softtargets.studies.study import Settings, Trial
from softtargets.theory import alpha_from_p

CLASSES = 10
METHODS = ("label smoothing", "logit smoothing", "forward correction", "none")

# By size: clean rates, strengths, and the training of chen-mnist, whose runs are used again where they are the same.
# The full one has, with four seeds, 256 runs of 6 million images, of which 128 are in chen-mnist.
SIZES: dict[str, tuple[tuple[float, ...], tuple[float, ...], Recipe]] = {
    "small": ((0.5, 0.85), (0.5, 0.8, 0.95), QUICK),
    "full": ((0.5, 0.7, 0.85, 0.95), (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99), PAPER),
}


def trials(settings: Settings) -> list[Trial]:
    """For each clean rate and seed: no remedy, forward correction, and both kinds of smoothing with each p."""
    rates, masses, recipe = SIZES[settings.size]
    cells = []
    for a in rates:
        ways: list[tuple[str, float, Regulariser]] = [
            ("none", 1.0, smoothing_to(1.0)),
            ("forward correction", a, ForwardCorrection()),
        ]
        for p in masses:
            ways.append(("label smoothing", p, smoothing_to(p)))
            ways.append(("logit smoothing", p, LogitSmoothing(alpha=moved(p))))
        for method, p, loss in ways:
            cells.append(({"regulariser": loss, "noise": noise(a)}, {"method": method, "a": a, "p": p}))
    return each_seed(settings, settings.base(recipe), cells)


def rates_and_masses(results: Results) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of the size that was trained: what claims are about, whether or not all of it has been."""
    size = next((outcome.trial.labels.get("size") for outcome in results.outcomes), None)
    return SIZES[size][:2] if size in SIZES else ((), ())


def moved(p: float) -> float:
    """The alpha for which (1 - alpha) I + alpha/M, the matrix on the logits, has p on its diagonal.

    >>> moved(0.91)
    0.1
    """
    return round(float(alpha_from_p(p, CLASSES, "all")), 6)
