"""What runs are trained with, loaded once: tasks, teachers, and what packs of one kind share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

import torch

from softtargets.models import Classifier
from softtargets.recipes import Dataset, Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.building import build_model
from softtargets.training.distributed.crew import Crew
from softtargets.training.machinery import Machinery
from softtargets.training.packing import Arrangement, arrangement, kind_of_run
from softtargets.training.sizing import Footprint, footprint, outline
from softtargets.training.tasks import LEARNT, Task, Teacher, prepare
from softtargets.training.teaching import LESSONS, has_lessons, has_weights

T = TypeVar("T")


class Resources:
    """All that one call of `train` has loaded onto its device; it stays there until the call ends."""

    def __init__(
        self, store: RunStore, device: torch.device, data_dir: Path | None, crew: Crew | None = None
    ) -> None:
        self.store = store
        self.device = device
        self.crew = crew  # where several processes train every run together
        self._data_dir = data_dir
        self._kept: dict[Any, Any] = {}

    def task(self, data: Dataset) -> Task:
        """A dataset as it was read."""
        return self._once(data, lambda: prepare(data, self.device, self._data_dir))

    def noisy(self, recipe: Recipe) -> Task:
        """The recipe's data with the labels it trains on."""
        return self.task(recipe.data).with_noise(recipe)

    def model(self, recipe: Recipe, weights: dict[str, torch.Tensor], task: Task) -> Classifier:
        """The recipe's net with finished weights."""
        model = build_model(recipe, task)
        model.load_state_dict(weights)
        return model.to(self.device)

    def finished(self, recipe: Recipe) -> Classifier:
        """The net of a recipe whose run is finished."""
        return self.restored(Run(self.store.root / recipe.id), self.task(recipe.data))

    def restored(self, run: Run, task: Task) -> Classifier:
        """The net of a finished run, for the task that its weights were made for."""
        task.refuse_foreign(run.provenance.get(LEARNT), f"run {run.id}")
        return self.model(run.recipe, run.weights(), task)

    def teacher(self, recipe: Recipe) -> Teacher | None:
        """The finished teacher of a recipe that has one."""
        taught = recipe.teacher
        if taught is None:
            return None
        run, task = Run(self.store.root / taught.id), self.task(taught.data)
        if has_weights(run) or not has_lessons(run):
            return self._once(taught.id, lambda: Teacher(taught, self.finished(taught), task))
        # Apart from the whole teacher, which is there later if it is trained again for its weights.
        kept = ("lessons", taught.id)
        return self._once(kept, lambda: Teacher(taught, None, task, kept=run.predictions(LESSONS).logits))

    def arrangement(self, recipe: Recipe) -> Arrangement:
        """How runs of this kind train together, if there is memory enough."""

        def make() -> Arrangement:
            if self.crew is not None:  # runs one after another, each by all processes
                return Arrangement(1, False)
            task = self.task(recipe.data)
            weights = sum(weight.numel() for weight in outline(recipe, task).parameters())
            return arrangement(recipe, weights, self.device, task.fuses_head(recipe))

        return self._once(("arrangement", kind_of_run(recipe)), make)

    def footprint(self, recipe: Recipe) -> Footprint | None:
        """The memory that runs of this kind take; None if that cannot be told."""
        stacked, task = self.arrangement(recipe).stacked, self.task(recipe.data)
        key = ("footprint", kind_of_run(recipe))
        return self._once(key, lambda: footprint(recipe, task, self.device, stacked))

    def machinery(self, recipe: Recipe) -> Machinery:
        """How runs of this kind are computed."""
        # Also a pack of one is a stack where larger ones are: so no run depends on who shared its pack.
        stacked, task = self.arrangement(recipe).stacked, self.task(recipe.data)
        key = ("machinery", kind_of_run(recipe))
        return self._once(key, lambda: Machinery(recipe, task, self.device, stacked, crew=self.crew))

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept
