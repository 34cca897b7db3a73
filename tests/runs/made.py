"""Runs that nobody trained, with all that a training leaves."""

from __future__ import annotations

from typing import Any

import torch

from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import Checkpoint, Run, RunStore

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=2)
ABOUT = {
    "softtargets": "0.1.0",
    "torch": "2.11",
    "python": "3.12",
    "device": "cuda",
    "device_name": "NVIDIA H200",
    "commit": "0123456789abcdef",
    "engine": 3,
    "seconds": 1.5,
    "images": 7,
    "finished": "2026-11-16T12:00:00+00:00",
}


def recipe(seed: int) -> Recipe:
    return BASE.replace({"seed": seed})


def finished(store: RunStore, seed: int, shift: float = 0.0, examples: int = 60, **about: Any) -> Run:
    """A run with weights, logits on the test set and two epochs; another `shift` is another training of it."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(examples) % 10
    logits = (3 + shift) * torch.randn(examples, 10, generator=generator)
    logits[torch.arange(examples), labels] += 2
    history = [{"epoch": epoch, "test_loss": 1 / (3 * epoch + seed) + shift} for epoch in (1, 2)]
    with store.claim(recipe(seed)) as writer:
        return writer.finish(
            {"head.weight": torch.full((10, 8), float(seed + shift))},
            {"test": {"logits": logits, "labels": labels, "features": torch.zeros(examples, 4)}},
            history,
            ABOUT | about,
        )


def failed(store: RunStore, seed: int) -> Run:
    with store.claim(recipe(seed)) as writer:
        return writer.fail("train_loss is nan", [{"epoch": 1, "test_loss": 3.0}], ABOUT)


def unfinished(store: RunStore, seed: int, step: int) -> Run:
    with store.claim(recipe(seed)) as writer:
        writer.checkpoint(Checkpoint({"w": torch.full((3,), float(step))}, {"step": step}))
        return writer.run
