"""A run that this process is training, and what is written when it has come to its end, one way or another."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.runs import SCORES, Run, RunWriter, environment, now
from softtargets.training.events import Watcher
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.precision import float32_products
from softtargets.training.scheduling.light import concluded
from softtargets.training.scheduling.resources import Resources
from softtargets.training.scheduling.todo import Todo
from softtargets.training.tasks.task import Task
from softtargets.training.teaching import is_taught_by

Keep = Sequence[str] | Mapping[str, Sequence[str]]
POLL_SECONDS = 0.2  # between two looks at what another process is doing


@dataclass(kw_only=True)
class Work(Start):
    """A run that this process has claimed, and since when it has been trained (`begun`).

    Its `seconds` are its share of the time that its packs took; `setup_seconds` are those among them until a pack had
    taken its first step, in which a GPU compiles and records. `waited_seconds` are there for data that are streamed:
    those in which the device had nothing to look at.
    """

    writer: RunWriter
    begun: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        if self.checkpoint is None:
            self.begun = {"started": now(), "seconds": 0.0, "setup_seconds": 0.0, "resumed": 0}
        else:
            self.begun = {"setup_seconds": 0.0, **self.checkpoint.progress["begun"]}
            self.begun["resumed"] += 1


@dataclass(frozen=True)
class Finisher:
    """Writes what runs have come to, for the watcher to hear.

    `_keep` are the splits of which predictions are kept, of all runs or by recipe, and `_afresh` recipes whose light
    runs are trained once more.
    """

    _resources: Resources
    _keep: Keep
    _watcher: Watcher
    _afresh: frozenset[str] = frozenset()

    def is_wanted_afresh(self, run: Run) -> bool:
        """Whether a finished run is trained once more, because somebody asked for what a light one has not."""
        return run.id in self._afresh and run.is_light

    def concluded(self, recipe: Recipe, todo: Todo) -> Run | None:
        """The run of a recipe, unless there is something left to do for it."""
        run = concluded(self._resources.store, recipe, todo)
        return None if run is not None and self.is_wanted_afresh(run) else run

    def end(self, pack: Pack | Fleet, run: int, work: Work, together: int, todo: Todo) -> None:
        """Write what a run has come to, and give it back."""
        recipe, slot, task = work.recipe, pack.slots[run], work.task
        weights = pack.weights(run)
        provenance = {
            **environment(str(self._resources.device)),
            **{key: told for key, told in work.begun.items() if key != "part"},
            "finished": now(),
            "seconds": round(work.begun["seconds"], 3),
            "setup_seconds": round(work.begun["setup_seconds"], 3),
            recipe.data.unit: slot.units,
            "steps": slot.step,
            "runs_together": together,
            **task.provenance(),
            **self._waited(work),
        }
        light = work.writer.light
        before = light.summary if light else None
        if slot.failure is not None:
            ended = work.writer.fail(slot.failure, slot.history, provenance)
            if light:
                self._watcher.noted(
                    f"Run {recipe.id}, trained again, failed: {slot.failure}. The light run stays."
                )
        else:
            model = self._resources.model(recipe, weights, task)
            provenance["parameters"] = sum(weight.numel() for weight in model.parameters())
            wanted = {name.removesuffix(SCORES): name for name in self._kept(recipe)}
            said = {
                split: _said(task, recipe, model, name)
                for split, name in wanted.items()
                if split in task.splits
            }
            ended = work.writer.finish(weights, said, slot.history, provenance, task.about_weights())
            if before not in (None, ended.summary):
                self._watcher.noted(
                    f"Run {recipe.id}, trained again for its weights, has different numbers from the light run that "
                    "it replaces; what studies measured on the light run is discarded and measured again."
                )
        work.writer.release()
        self.conclude(todo, recipe, ended)

    def _waited(self, work: Work) -> dict[str, float]:
        """How long the device waited for data that are streamed, and which share of the time that was; told, too."""
        if "waited_seconds" not in work.begun:
            return {}
        seconds, waited = work.begun["seconds"], work.begun["waited_seconds"]
        share = min(1.0, waited / seconds) if seconds > 0 else 0.0
        self._watcher.noted(
            f"Run {work.recipe.id}: the device waited for {work.recipe.data.unit} {share:.0%} of the time."
        )
        return {"waited_seconds": round(waited, 3), "waited": round(share, 4)}

    def fail_orphan(self, recipe: Recipe, writer: RunWriter) -> bool:
        """Whether the teacher failed, or did so when only its weights were missing; the student then fails too."""
        if recipe.teacher is None:
            return False
        teacher = Run(self._resources.store.root / recipe.teacher.id)
        if teacher.status == "finished" and is_taught_by(recipe, teacher):
            return False
        nothing = {"started": now(), "finished": now(), "seconds": 0.0, recipe.data.unit: 0}
        reason = f"its teacher {recipe.teacher.id} failed"
        reason += " when it was trained again for its weights" if teacher.is_light else ""
        writer.fail(reason, [], environment(str(self._resources.device)) | nothing)
        return True

    def conclude(self, todo: Todo, recipe: Recipe, run: Run) -> None:
        """A run has come to its end, here or in another process: nothing is left to do for it."""
        todo.pop(recipe.id)
        self.complete(recipe, run)
        self._watcher.finished(run)

    def conclude_found(self, todo: Todo) -> None:
        """Of what is left, that which another process has brought to its end meanwhile."""
        for recipe in list(todo.values()):
            if (run := self.concluded(recipe, todo)) is not None:
                self.conclude(todo, recipe, run)

    def complete(self, recipe: Recipe, run: Run) -> None:
        """Add predictions that an earlier call did not keep, from the finished weights; a light run has none."""
        if run.status != "finished" or run.is_light or not self._missing(recipe, run):
            return
        while (writer := self._resources.store.claim(recipe)) is None:
            time.sleep(POLL_SECONDS)  # another process is adding predictions to the same run
        with writer, float32_products(recipe.precision):
            run = Run(run.directory)
            task = self._resources.noisy(recipe)
            model = self._resources.restored(run, task)
            for name in self._missing(recipe, run):
                writer.add_predictions(name.removesuffix(SCORES), _said(task, recipe, model, name))

    def _kept(self, recipe: Recipe) -> Sequence[str]:
        return self._keep.get(recipe.id, ()) if isinstance(self._keep, Mapping) else self._keep

    def _missing(self, recipe: Recipe, run: Run) -> list[str]:
        return lacking_predictions(run, recipe, self._kept(recipe))


def lacking_predictions(run: Run, recipe: Recipe, keep: Sequence[str]) -> list[str]:
    """Of what is to be kept of a finished run, as `train` takes it, that which is not there."""
    there = ((name, name.removesuffix(SCORES)) for name in keep)
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
