"""What the quickstart trains, and what it measures on each run."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error, fit_temperature
from softtargets.geometry import cluster_spread, project, template_plane
from softtargets.recipes import (
    MLP,
    SGD,
    CrossEntropy,
    Digits,
    Distillation,
    LabelSmoothing,
    Linear,
    Recipe,
    Regulariser,
)
from softtargets.runs import Predictions, Run
from softtargets.studies.study import Settings, Trial

ALPHAS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
TEACHER_ALPHAS = (0.0, 0.1)
TEMPERATURES = (1.0, 2.0, 4.0)
PLANE = (3, 8, 9)

KEEP = ("train", "validation", "test")

_TRAINING: dict[str, Any] = {"optimiser": SGD(lr=0.1, momentum=0.9), "schedule": Linear(), "batch": 32}

# Few examples on purpose: with 200 of them a net fits the training set perfectly and still errs on one
# held-out digit in ten, which is where over-confidence can be seen.
NET = Recipe(data=Digits(validation=400, limit=200), model=MLP(hidden=(128, 128)), epochs=40, **_TRAINING)

# The teacher has seen all the training digits, its student only a hundred: what the student can learn beyond
# their labels must come through the teacher's probabilities.
TEACHER = Recipe(data=Digits(validation=400), model=MLP(hidden=(128, 128)), epochs=30, **_TRAINING)
STUDENT = Recipe(data=Digits(validation=400, limit=100), model=MLP(hidden=(64, 64)), epochs=60, **_TRAINING)


def trials(settings: Settings) -> list[Trial]:
    """Nets over alpha, two kinds of teacher, and students of each at several temperatures."""
    net, teacher, student = (settings.base(recipe) for recipe in (NET, TEACHER, STUDENT))
    grid = []
    for seed in range(settings.seeds):
        for alpha in ALPHAS:
            grid.append(Trial(_vary(net, _smoothing(alpha), seed), {"role": "net", "alpha": alpha}))
        for alpha in TEACHER_ALPHAS:
            taught = _vary(teacher, _smoothing(alpha), seed)
            grid.append(Trial(taught, {"role": "teacher", "alpha": alpha}))
            grid.append(Trial(_vary(student, _smoothing(alpha), seed), {"role": "baseline", "alpha": alpha}))
            for temperature in TEMPERATURES:
                soft = Distillation(teacher=taught, temperature=temperature)
                labels = {"role": "student", "alpha": alpha, "temperature": temperature}
                grid.append(Trial(_vary(student, soft, seed), labels))
    return grid


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy and calibration on the test digits, and how tight the clusters are."""
    test = run.predictions("test")
    measured = {
        "accuracy": float((test.logits.argmax(-1) == test.labels).double().mean()),
        "nll": float(F.cross_entropy(test.logits, test.labels)),
        "ece": expected_calibration_error(test.logits.softmax(-1), test.labels),
    }
    if trial.labels["role"] == "net":
        held_out = run.predictions("validation")
        temperature = fit_temperature(held_out.logits, held_out.labels)
        scaled = test.logits / temperature
        measured |= {
            "ece_validation": expected_calibration_error(held_out.logits.softmax(-1), held_out.labels),
            "temperature": temperature,
            "ece_scaled": expected_calibration_error(scaled.softmax(-1), test.labels),
            "nll_scaled": float(F.cross_entropy(scaled, test.labels)),
            "spread_train": _spread(run, run.predictions("train")),
            "spread_test": _spread(run, test),
        }
    return measured


def plane_points(run: Run, predictions: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """The examples of the three chosen classes on the plane of their templates, and their labels."""
    chosen = torch.isin(predictions.labels, torch.tensor(PLANE))
    basis = template_plane(run.weights()["head.weight"], PLANE)
    return project(predictions.features[chosen], basis), predictions.labels[chosen]


def _spread(run: Run, predictions: Predictions) -> float:
    return cluster_spread(*plane_points(run, predictions))


def _smoothing(alpha: float) -> Regulariser:
    return LabelSmoothing(alpha=alpha) if alpha else CrossEntropy()


def _vary(recipe: Recipe, regulariser: Regulariser, seed: int) -> Recipe:
    return recipe.replace({"regulariser": regulariser, "seed": seed})
