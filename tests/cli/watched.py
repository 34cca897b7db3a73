"""Trainings that only their watchers believe in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from softtargets.recipes import MLP, Digits, LabelSmoothing, Recipe
from softtargets.runs import Run


def recipes(count: int, **fields: Any) -> list[Recipe]:
    fields = {
        "data": Digits(),
        "model": MLP(),
        "regulariser": LabelSmoothing(alpha=0.1),
        "epochs": 10,
    } | fields
    return [Recipe(seed=seed, **fields) for seed in range(count)]


def ended(
    root: Path, recipe: Recipe, reason: str | None = None, started: str = "2020-01-01T00:00:00+00:00"
) -> Run:
    """A run directory with just enough in it to be told of; failed if there is a reason."""
    directory = root / recipe.id
    directory.mkdir()
    provenance = {"seconds": 1.25, "images": 1000, "started": started} | (
        {"reason": reason} if reason else {}
    )
    manifest = {
        "id": recipe.id,
        "status": "failed" if reason else "finished",
        "summary": {"train_loss": 0.5, "validation_accuracy": 0.75, "test_accuracy": 0.7},
        "provenance": provenance,
        "files": {},
    }
    (directory / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    (directory / "run.json").write_text(json.dumps(manifest))
    return Run(directory)


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.moment = 1000.0

    def __call__(self) -> float:
        return self.moment

    def wait(self, seconds: float) -> None:
        self.moment += seconds
