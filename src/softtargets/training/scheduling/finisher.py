"""A run that this process is training, and what is written when it has come to its end, one way or another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.runs import SCORES, Run, RunWriter, environment, now
from softtargets.training.events import Watcher
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.precision import float32_products
from softtargets.training.scheduling.resources import Resources
from softtargets.training.tasks.task import Task

POLL_SECONDS = 0.2  # between two looks at what another process is doing


@dataclass(kw_only=True)
class Work(Start):
    """A run that this process has claimed, and since when it has been trained (`begun`)."""

    writer: RunWriter
    begun: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.checkpoint is None:
            self.begun = {"started": now(), "seconds": 0.0, "resumed": 0}
        else:
            self.begun = dict(self.checkpoint.progress["begun"])
            self.begun["resumed"] += 1


@dataclass(frozen=True)
class Finisher:
    """Writes what runs have come to, for the watcher to hear; `_keep` are the splits of which predictions are kept."""

    _resources: Resources
    _keep: Sequence[str]
    _watcher: Watcher

    def end(self, pack: Pack | Fleet, run: int, work: Work, together: int, todo: dict[str, Recipe]) -> None:
        """Write what a run has come to, and give it back."""
        recipe, slot, task = work.recipe, pack.slots[run], work.task
        weights = pack.weights(run)
        provenance = {
            **environment(str(self._resources.device)),
            **work.begun,
            "finished": now(),
            "seconds": round(work.begun["seconds"], 3),
            recipe.data.unit: slot.units,
            "steps": slot.step,
            "runs_together": together,
            **task.provenance(),
        }
        if slot.failure is not None:
            concluded = work.writer.fail(slot.failure, slot.history, provenance)
        else:
            model = self._resources.model(recipe, weights, task)
            provenance["parameters"] = sum(weight.numel() for weight in model.parameters())
            wanted = {name.removesuffix(SCORES): name for name in self._keep}
            said = {
                split: _said(task, recipe, model, name)
                for split, name in wanted.items()
                if split in task.splits
            }
            concluded = work.writer.finish(weights, said, slot.history, provenance)
        work.writer.release()
        self.conclude(todo, recipe, concluded)

    def fail_orphan(self, recipe: Recipe, writer: RunWriter) -> bool:
        """Whether the teacher failed; the student then fails too."""
        if recipe.teacher is None or Run(self._resources.store.root / recipe.teacher.id).status == "finished":
            return False
        nothing = {"started": now(), "finished": now(), "seconds": 0.0, recipe.data.unit: 0}
        reason = f"its teacher {recipe.teacher.id} failed"
        writer.fail(reason, [], environment(str(self._resources.device)) | nothing)
        return True

    def conclude(self, todo: dict[str, Recipe], recipe: Recipe, run: Run) -> None:
        """A run has come to its end, here or in another process: nothing is left to do for it."""
        todo.pop(recipe.id)
        self.complete(recipe, run)
        self._watcher.finished(run)

    def complete(self, recipe: Recipe, run: Run) -> None:
        """Add predictions that an earlier call did not keep, from the finished weights."""
        if run.status != "finished" or not self._missing(recipe, run):
            return
        while (writer := self._resources.store.claim(recipe)) is None:
            time.sleep(POLL_SECONDS)  # another process is adding predictions to the same run
        with writer, float32_products(recipe.precision):
            run = Run(run.directory)
            task = self._resources.noisy(recipe)
            model = self._resources.model(recipe, run.weights(), task)
            for name in self._missing(recipe, run):
                writer.add_predictions(name.removesuffix(SCORES), _said(task, recipe, model, name))

    def _missing(self, recipe: Recipe, run: Run) -> list[str]:
        there = ((name, name.removesuffix(SCORES)) for name in self._keep)
        return [
            name
            for name, split in there
            if split in recipe.data.splits
            and (not run.has_predictions(split) or (name == split and run.has_only_scores(split)))
        ]


def _said(task: Task, recipe: Recipe, model: Classifier, name: str) -> dict[str, Tensor]:
    """What a net says of a split that is to be kept, by its name: all, or without penultimate activations."""
    said = task.predict(recipe, model, name.removesuffix(SCORES))
    return {key: value for key, value in said.items() if key != "features" or not name.endswith(SCORES)}
