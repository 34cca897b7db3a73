"""Stores of many finished runs, by the writer that trainings use; a study of them, and a campaign."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from softtargets.campaign import Campaign, Entry
from softtargets.claims import Claim, above
from softtargets.recipes import MLP, Digits, LabelSmoothing, Recipe
from softtargets.report import Section
from softtargets.runs import Run, RunStore, RunWriter, environment
from softtargets.studies import Findings, Settings, Study, Trial

EXAMPLES, CLASSES, HIDDEN = 32, 10, 4
STRENGTHS = 10
_BASE = Recipe(data=Digits(limit=64), model=MLP(hidden=(HIDDEN,)), epochs=3, batch=32)


def recipes(count: int, start: int = 0) -> list[Recipe]:
    """A sweep over strengths and seeds, of two kinds; the first so many are the same in sweeps of any size."""
    return [
        _BASE.replace(
            {
                "regulariser": LabelSmoothing(alpha=number % STRENGTHS / STRENGTHS),
                "batch": 32 if number % 2 else 64,
                "seed": number // STRENGTHS,
            }
        )
        for number in range(start, start + count)
    ]


def prepare(store: RunStore, chosen: Iterable[Recipe]) -> None:
    """The same as `fill` without waiting for the disk after each file: a store to measure on survives nothing."""
    with patch.object(os, "fsync", lambda descriptor: None):
        fill(store, chosen)


def fill(store: RunStore, chosen: Iterable[Recipe]) -> None:
    """Write finished runs that are not there yet."""
    for recipe in chosen:
        if not (store.root / recipe.id / "run.json").exists():
            writer = store.claim(recipe)
            assert writer is not None
            with writer:
                finish(writer)


def finish(writer: RunWriter) -> Run:
    """What a training leaves, of a tiny net: weights, predictions with activations, three epochs of metrics.

    The numbers follow from the seed, so that a run is the same whoever makes it.
    """
    recipe = writer.recipe
    draws = torch.Generator().manual_seed(recipe.seed)
    tensors = {
        "body.1.weight": torch.randn(HIDDEN, 64, generator=draws),
        "body.1.bias": torch.zeros(HIDDEN),
        "head.weight": torch.randn(CLASSES, HIDDEN, generator=draws),
        "head.bias": torch.zeros(CLASSES),
    }
    logits = torch.randn(EXAMPLES, CLASSES, generator=draws)
    said = {
        "logits": logits,
        "labels": torch.arange(EXAMPLES) % CLASSES,
        "features": torch.randn(EXAMPLES, HIDDEN, generator=draws),
    }
    right = float((logits.argmax(1) == said["labels"]).float().mean())
    history = [
        {
            "epoch": epoch,
            "step": 2 * epoch,
            "train_loss": 2.3 / epoch,
            "test_loss": 2.4,
            "test_accuracy": right,
        }
        for epoch in (1, 2, 3)
    ]
    return writer.finish(tensors, {"test": said}, history, _provenance())


def _provenance() -> dict[str, Any]:
    if not _MADE:
        moment = "2026-01-01T00:00:00+00:00"
        work = {"seconds": 0.5, "setup_seconds": 0.1, "images": 192, "steps": 6, "runs_together": 1}
        _MADE.update({**environment("cpu"), "started": moment, "finished": moment, "resumed": 0, **work})
    return _MADE


_MADE: dict[str, Any] = {}  # what the machine says of itself, asked once


def disk(root: Path) -> tuple[int, int]:
    """Bytes of the blocks that a directory takes, and its files and directories."""
    taken = number = 0
    left = [str(root)]
    while left:
        with os.scandir(left.pop()) as items:
            for item in items:
                number += 1
                taken += 512 * item.stat(follow_symlinks=False).st_blocks
                if item.is_dir(follow_symlinks=False):
                    left.append(item.path)
    return taken, number


def study_of(chosen: Sequence[Recipe]) -> Study:
    """A study that asks one number of each run: what a page costs beyond its instruments."""

    def trials(settings: Settings) -> list[Trial]:
        return [Trial(recipe, {"alpha": _alpha(recipe)}) for recipe in chosen]

    def measure(trial: Trial, run: Run) -> dict[str, float]:
        kept = run.predictions("test")
        return {"accuracy": float((kept.logits.argmax(-1) == kept.labels).float().mean())}

    def claims(results: Any) -> tuple[Claim, ...]:
        return (Claim("They learn.", (), "accuracy", *above(-1, results.sample("accuracy"))),)

    def findings(results: Any) -> Findings:
        return Findings((Section("Said", (f"{len(results.outcomes)} runs.",)),), claims(results))

    told = {
        "name": "scale",
        "title": "How large can a study be?",
        "lead": "It is made of tiny runs.",
        "papers": (),
    }
    return Study(**told, trials=trials, measure=measure, findings=findings, claims=claims, seeds=1)  # type: ignore[arg-type]


def _alpha(recipe: Recipe) -> float:
    assert isinstance(recipe.regulariser, LabelSmoothing)
    return float(recipe.regulariser.alpha)


def campaign_of(study: Study, directory: Path) -> Campaign:
    """A campaign of this one study."""
    settings = Settings(1)
    entry = Entry(1, study, settings, tuple(study.trials(settings)), page=study.name)
    return Campaign((entry,), path=directory / "campaign.yaml")
