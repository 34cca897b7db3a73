"""Whether what is fast learns as well: the same training by the whole engine and by the plain loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.failures import explain, release
from benchmarks.training.contestants import eager_products
from benchmarks.training.eager import EagerLoop
from benchmarks.training.images import Images
from benchmarks.training.nets import TRAININGS
from benchmarks.training.results import AccuracyCase, AccuracyResult
from softtargets.data import status
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Recipe
from softtargets.runs import RunStore
from softtargets.training import train


def check_data(case: AccuracyCase, data_dir: Path | None) -> None:
    """Refuse before anything is measured what could not be measured at the end."""
    if status(case.data, data_dir) != "ready":
        raise SofttargetsError(
            f"--data {case.data} is not there: get it with softtargets data fetch {case.data}, or leave it at digits"
        )


def compare_accuracy(
    case: AccuracyCase, session: int, device: torch.device, data_dir: Path | None
) -> AccuracyResult:
    """Train with every seed on both sides. What breaks is written down with its reason."""
    recipes = [
        replace(
            TRAININGS[case.data],
            epochs=case.epochs,
            precision=case.precision,  # type: ignore[arg-type]
            seed=seed,
        )
        for seed in range(case.seeds)
    ]
    found = AccuracyResult(case=case, session=session)
    try:
        found = replace(found, ours=_ours(recipes, device, data_dir))
        found = replace(found, eager=_eager(recipes, device, data_dir))
    except Exception as error:
        found = replace(found, status="failed", reason=explain(error))
    release(device)
    return found


def _ours(recipes: list[Recipe], device: torch.device, data_dir: Path | None) -> tuple[float, ...]:
    with TemporaryDirectory(prefix="softtargets-bench-") as directory:
        store = RunStore(Path(directory))
        runs = train(recipes, store, device=str(device), keep=(), data_dir=data_dir)
        for run in runs:
            if run.status != "finished":
                raise RuntimeError(f"a run failed: {run.provenance['reason']}")
        return tuple(float(run.summary["test_accuracy"]) for run in runs)


def _eager(recipes: list[Recipe], device: torch.device, data_dir: Path | None) -> tuple[float, ...]:
    images = Images.read(recipes[0].data, device, data_dir)
    accuracies = []
    with eager_products(device):
        for recipe in recipes:
            loop = EagerLoop(recipe, images)
            for _ in range(recipe.epochs or 0):
                last = loop.epoch()
            accuracies.append(last.test_accuracy)
    return tuple(accuracies)
