"""Who takes part: our engine with a pack of runs, and the plain loop. Each trains whole epochs when told to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

import torch

from softtargets.bench.training.eager import EagerLoop
from softtargets.bench.training.images import Images
from softtargets.bench.training.nets import SUBJECTS, Subject
from softtargets.bench.training.results import EAGER, Case
from softtargets.recipes import Digits, ImageDataset, Recipe
from softtargets.training.building import build_model
from softtargets.training.fleet import Fleet
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Pack, Start
from softtargets.training.packing import arrangement
from softtargets.training.precision import float32_products
from softtargets.training.tasks.images import ImageTask, Split


class Contestant(Protocol):
    """What is measured."""

    images: int  # seen in training in one epoch, all runs together

    def epoch(self) -> None:
        """Train one epoch and evaluate; what was measured has reached the host."""


class Ours:
    """Runs of one net with seeds 0, 1, ..., packed as the engine packs them, without its files."""

    def __init__(self, case: Case, prepared: ImageTask, device: torch.device) -> None:
        recipes = _recipes(case)
        self.images = case.runs * len(prepared.splits["train"])
        self._steps, self._precision = case.batches, case.precision
        with float32_products(self._precision):
            machinery = Machinery(recipes[0], prepared, device, case.arrangement == "stacked")
            starts = [Start(recipe, prepared) for recipe in recipes]
            together = Pack if machinery.stacked else Fleet
            self._pack = together(starts, device, machinery)

    def epoch(self) -> None:
        """As the engine's loop goes through it."""
        with float32_products(self._precision):
            for _ in range(self._steps):
                if due := self._pack.advance():
                    self._pack.measure(due)
        # A run that has failed is no longer measured, which would look like speed.
        for slot in self._pack.slots:
            if slot.failure is not None:
                raise RuntimeError(f"a run diverged: {slot.failure}")


def prepared_for(recipe: Recipe, images: Images) -> ImageTask:
    """The images as our engine takes its data.

    The standardisation is the engine's own, borrowed from a dataset that is always there: which mean it subtracts does
    not matter to the speed.
    """
    splits = {
        "train": Split(images.train, images.train_labels, images.train_labels),
        "test": Split(images.test, images.test_labels, images.test_labels),
    }
    assert isinstance(recipe.data, ImageDataset)
    there = ImageTask.prepare(Digits(standardise=recipe.data.standardise), images.device)
    return replace(there, splits=splits, classes=images.classes)


class Eager:
    """The plain loop, one run."""

    def __init__(self, name: str, subject: Subject, batch: int, images: Images) -> None:
        self.images = len(images.train)
        self._loop = EagerLoop(replace(subject.recipe, batch=batch), images, bf16=name != EAGER)

    def epoch(self) -> None:
        """One epoch of the loop."""
        with eager_products(self._loop.images.device):
            self._loop.epoch()


def eager_products(device: torch.device) -> AbstractContextManager[None]:
    """The arithmetic of float32 on the eager side: TF32 is allowed on a GPU, and a CPU stays with what was asked."""
    return float32_products("tf32" if device.type == "cuda" else "fp32")


def engine_would(case: Case, prepared: ImageTask, device: torch.device) -> bool:
    """Whether the engine itself would put so many runs together in this way."""
    recipe = _recipes(case)[0]
    with torch.device("meta"):  # shapes only
        net = build_model(recipe, prepared)
    found = arrangement(recipe, sum(weight.numel() for weight in net.parameters()), device)
    return found.stacked == (case.arrangement == "stacked") and case.runs <= found.runs


def _recipes(case: Case) -> Sequence[Recipe]:
    shared = replace(SUBJECTS[case.net].recipe, batch=case.batch, precision=case.precision)  # type: ignore[arg-type]
    return [replace(shared, seed=seed) for seed in range(case.runs)]
