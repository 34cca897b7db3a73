"""Runs that were never trained: networks that say what they are told of a few examples, and results from numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from softtargets.runs import Run, RunStore
from softtargets.studies import Outcome, Results, Study, Trial

PROVENANCE = {
    "softtargets": "0.1.0",
    "seconds": 1.0,
    "torch": "2",
    "python": "3",
    "device": "cpu",
    "device_name": "none",
    "examples": {"train": 300, "validation": 300, "test": 300},
    "parameters": 1,
    "images": 300,
}
SPLITS = ("train", "validation", "test")


class Told:
    """In the place of a run: its epochs, and nothing else."""

    id = "told"
    provenance = PROVENANCE

    def __init__(self, history: list[dict[str, Any]]) -> None:
        self._history = history
        self.summary = history[-1]

    def history(self) -> list[dict[str, Any]]:
        return self._history


def told(
    study: Study,
    measures: Callable[[Trial], Mapping[str, float]],
    size: str = "full",
    seeds: int | None = None,
) -> Results:
    """Results with these measures, of the study's whole grid."""
    trials = study.trials(study.settings(seeds, {"size": size}))
    history = [{"epoch": epoch, "test_accuracy": epoch / 4} for epoch in (1, 2, 3)]
    return Results(tuple(Outcome(trial, Told(history), measures(trial)) for trial in trials))


def predictions(classes: int, examples: int, sharpness: float, seed: int) -> dict[str, torch.Tensor]:
    """Logits, labels and activations of examples of every class in turn; `sharpness` is how far apart classes are."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(examples) % classes
    features = torch.randn(examples, 16, generator=draw) + sharpness * head(classes)[0][labels]
    weights, bias = head(classes)
    return {"logits": features @ weights.T + bias, "labels": labels, "features": features}


def head(classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Templates and biases, the same each time."""
    draw = torch.Generator().manual_seed(classes)
    return torch.randn(classes, 16, generator=draw), torch.zeros(classes)


def written(store: RunStore, trial: Trial, examples: int = 300) -> Run:
    """A finished run of this trial whose network was never trained."""
    recipe = trial.recipe
    classes = 100 if recipe.data.name == "cifar100" else 10
    sharpness = 3.0 if getattr(recipe.regulariser, "alpha", 0) else 1.0
    weights, bias = head(classes)
    said = {
        split: predictions(classes, examples, sharpness, 10 * recipe.seed + place)
        for place, split in enumerate(SPLITS)
    }
    history = [
        {"epoch": epoch, "test_accuracy": epoch / 3, "train_accuracy": epoch / 3, "train_loss": 1.0}
        for epoch in (1, 2, 3)
    ]
    with store.claim(recipe) as writer:
        return writer.finish({"head.weight": weights, "head.bias": bias}, said, history, PROVENANCE)
