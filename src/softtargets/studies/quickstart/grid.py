"""What the quickstart trains, models over alpha, two kinds of teacher, and their students; and what it measures."""

from __future__ import annotations

from typing import Any

import torch

from softtargets.calibration import expected_calibration_error, fit_temperature
from softtargets.geometry import cluster_spread, project, template_plane
from softtargets.recipes import MLP, SGD, Digits, Distillation, Linear, Recipe
from softtargets.runs import Predictions, Run
from softtargets.studies.grids import smoothing, trial
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.recorded import RecordedRun
from softtargets.studies.study import Settings, Trial

ALPHAS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
TEACHER_ALPHAS = (0.0, 0.1)
TEMPERATURES = (1.0, 2.0, 4.0)
# The digits whose templates span the plane.
PLANE = (3, 8, 9)

_TRAINING: dict[str, Any] = {"optimiser": SGD(lr=0.1, momentum=0.9), "schedule": Linear(), "batch": 32}

# Few examples on purpose: with 200 of them a net fits the training set perfectly and still errs on one
# held-out digit in ten, which is where overconfidence can be seen.
NET = Recipe(data=Digits(validation=400, limit=200), model=MLP(hidden=(128, 128)), epochs=40, **_TRAINING)

# The teacher has seen all the training digits, its student only a hundred: what the student can learn beyond
# their labels must come through the teacher's probabilities.
TEACHER = Recipe(data=Digits(validation=400), model=MLP(hidden=(128, 128)), epochs=30, **_TRAINING)
STUDENT = Recipe(data=Digits(validation=400, limit=100), model=MLP(hidden=(64, 64)), epochs=60, **_TRAINING)


def trials(settings: Settings) -> list[Trial]:
    """Models over alpha, two kinds of teacher, and students of each at several temperatures."""
    net, teacher, student = (settings.base(recipe) for recipe in (NET, TEACHER, STUDENT))
    grid = []
    for seed in range(settings.seeds):
        for alpha in ALPHAS:
            grid.append(
                trial(net, {"regulariser": smoothing(alpha), "seed": seed}, role="model", alpha=alpha)
            )
        for alpha in TEACHER_ALPHAS:
            varied = {"regulariser": smoothing(alpha), "seed": seed}
            taught = trial(teacher, varied, role="teacher", alpha=alpha)
            grid += [taught, trial(student, varied, role="baseline", alpha=alpha)]
            for t in TEMPERATURES:
                soft = {"regulariser": Distillation(teacher=taught.recipe, temperature=t), "seed": seed}
                grid.append(trial(student, soft, role="student", alpha=alpha, temperature=t))
    return grid


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy and calibration on the test digits, and how tight the clusters are."""
    test = run.predictions("test")
    measured = {"accuracy": accuracy(test), **likelihood_and_calibration(test.logits, test.labels)}
    if trial.labels["role"] == "model":
        held_out = run.predictions("validation")
        temperature = fit_temperature(held_out.logits, held_out.labels)
        scaled = likelihood_and_calibration(test.logits / temperature, test.labels)
        measured |= {
            "ece_validation": expected_calibration_error(held_out.logits.softmax(-1), held_out.labels),
            "temperature": temperature,
            "ece_scaled": scaled["ece"],
            "nll_scaled": scaled["nll"],
            "spread_train": cluster_spread(*plane_points(run, run.predictions("train"))),
            "spread_test": cluster_spread(*plane_points(run, test)),
        }
    return measured


def plane_points(run: Run | RecordedRun, predictions: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """The examples of the three chosen classes on the plane of their templates, and their labels."""
    chosen = torch.isin(predictions.labels, torch.tensor(PLANE))
    basis = template_plane(run.weights()["head.weight"], PLANE)
    return project(predictions.features[chosen], basis), predictions.labels[chosen]


def plane_templates(run: Run | RecordedRun) -> torch.Tensor:
    """Where the templates of the three chosen classes lie on their own plane, (3, 2)."""
    head = run.weights()["head.weight"]
    return project(head[list(PLANE)], template_plane(head, PLANE))
