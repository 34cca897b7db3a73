"""Who takes part: our engine with a pack of runs, and the plain loop. Each call trains an epoch and evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import torch

from benchmarks.bench import Contestant
from benchmarks.training.eager import EagerLoop
from benchmarks.training.images import Images
from benchmarks.training.nets import TRAINED
from benchmarks.training.results import EAGER, OURS, TrainingCase
from softtargets.recipes import Digits, ImageDataset, Recipe
from softtargets.training.building import build_model
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.packing import arrangement
from softtargets.training.precision import float32_products
from softtargets.training.tasks.images import ImageTask, Split


def ours(case: TrainingCase, prepared: ImageTask, device: torch.device) -> Contestant:
    """Runs of one net with seeds 0, 1, ..., packed as the engine packs them, without its files."""
    pack = packed(case, prepared, device)

    def epoch() -> None:
        with float32_products(case.precision):
            for _ in range(case.batches):
                if due := pack.advance():
                    pack.measure(due)
        # A run that has failed is no longer measured, which would look like speed.
        for slot in pack.slots:
            if slot.failure is not None:
                raise RuntimeError(f"a run diverged: {slot.failure}")

    return Contestant(OURS, epoch, images=case.runs * len(prepared.splits["train"]))


def packed(case: TrainingCase, prepared: ImageTask, device: torch.device) -> Pack | Fleet:
    """The runs of a case as the engine's loop holds them."""
    recipes = _recipes(case)
    with float32_products(case.precision):
        machinery = Machinery(recipes[0], prepared, device, case.arrangement == "stacked")
        starts = [Start(recipe, prepared) for recipe in recipes]
        return (Pack if machinery.stacked else Fleet)(starts, machinery)


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


def eager(name: str, net: str, batch: int, images: Images) -> Contestant:
    """The plain loop, one run."""
    loop = EagerLoop(replace(TRAINED[net].recipe, batch=batch), images, bf16=name != EAGER)

    def epoch() -> None:
        with eager_products(images.device):
            loop.epoch()

    return Contestant(name, epoch, images=len(images.train))


def eager_products(device: torch.device) -> AbstractContextManager[None]:
    """The arithmetic of float32 on the eager side: TF32 is allowed on a GPU, and a CPU stays with what was asked."""
    return float32_products("tf32" if device.type == "cuda" else "fp32")


def engine_would(case: TrainingCase, prepared: ImageTask, device: torch.device) -> bool:
    """Whether the engine itself would put so many runs together in this way."""
    recipe = _recipes(case)[0]
    with torch.device("meta"):  # shapes only
        net = build_model(recipe, prepared)
    found = arrangement(recipe, sum(weight.numel() for weight in net.parameters()), device)
    return found.stacked == (case.arrangement == "stacked") and case.runs <= found.runs


def _recipes(case: TrainingCase) -> Sequence[Recipe]:
    shared = replace(TRAINED[case.net].recipe, batch=case.batch, precision=case.precision)  # type: ignore[arg-type]
    return [replace(shared, seed=seed) for seed in range(case.runs)]
