"""What the quickstart measures on each run."""

from __future__ import annotations

import torch

from softtargets.calibration import expected_calibration_error, fit_temperature
from softtargets.geometry import cluster_spread, project, template_plane
from softtargets.runs import Predictions, Run
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.study import Trial

PLANE = (3, 8, 9)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy and calibration on the test digits, and how tight the clusters are."""
    test = run.predictions("test")
    measured = {"accuracy": accuracy(test), **likelihood_and_calibration(test.logits, test.labels)}
    if trial.labels["role"] == "net":
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


def plane_points(run: Run, predictions: Predictions) -> tuple[torch.Tensor, torch.Tensor]:
    """The examples of the three chosen classes on the plane of their templates, and their labels."""
    chosen = torch.isin(predictions.labels, torch.tensor(PLANE))
    basis = template_plane(run.weights()["head.weight"], PLANE)
    return project(predictions.features[chosen], basis), predictions.labels[chosen]
