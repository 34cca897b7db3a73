"""What is written when a run has come to its end, one way or another."""

from __future__ import annotations

import time
from collections.abc import Sequence

from softtargets.recipes import Recipe
from softtargets.runs import Run, RunWriter
from softtargets.runs.provenance import environment, now
from softtargets.training.fleet import Fleet
from softtargets.training.pack import Pack
from softtargets.training.precision import float32_products
from softtargets.training.prediction import predict
from softtargets.training.supplies import Supplies
from softtargets.training.watching import Watcher
from softtargets.training.work import Work

POLL_SECONDS = 0.2  # between two looks at what another process is doing


class Endings:
    """Writes what runs have come to; `keep` are the splits on which predictions are kept."""

    def __init__(self, supplies: Supplies, keep: Sequence[str], watcher: Watcher) -> None:
        self._supplies = supplies
        self._keep = keep
        self._watcher = watcher

    def end(self, pack: Pack | Fleet, run: int, work: Work, together: int, todo: dict[str, Recipe]) -> None:
        """Write what a run has come to, and give it back."""
        recipe, slot, prepared = work.recipe, pack.slots[run], work.start.prepared
        weights = pack.weights(run)
        provenance = {
            **environment(str(self._supplies.device)),
            **work.begun,
            "finished": now(),
            "seconds": round(work.begun["seconds"], 3),
            "images": slot.images,
            "steps": slot.step,
            "runs_together": together,
            "examples": {name: len(split) for name, split in prepared.splits.items()},
            "classes": list(prepared.classes),
        }
        if slot.failure is not None:
            concluded = work.writer.fail(slot.failure, slot.history, provenance)
        else:
            model = self._supplies.model(recipe, weights, prepared)
            provenance["parameters"] = sum(weight.numel() for weight in model.parameters())
            kept = [name for name in self._keep if name in prepared.splits]
            said = {name: predict(recipe, model, prepared.splits[name], prepared) for name in kept}
            concluded = work.writer.finish(weights, said, slot.history, provenance)
        work.writer.release()
        self.conclude(todo, recipe, concluded)

    def fail_orphan(self, recipe: Recipe, writer: RunWriter) -> bool:
        """Whether the teacher failed; the student then fails too."""
        if recipe.teacher is None or Run(self._supplies.store.root / recipe.teacher.id).status == "finished":
            return False
        nothing = {"started": now(), "finished": now(), "seconds": 0.0, "images": 0}
        reason = f"its teacher {recipe.teacher.id} failed"
        writer.fail(reason, [], environment(str(self._supplies.device)) | nothing)
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
        while (writer := self._supplies.store.claim(recipe)) is None:
            time.sleep(POLL_SECONDS)  # another process is adding predictions to the same run
        with writer, float32_products(recipe.precision):
            run = Run(run.directory)
            prepared = self._supplies.noisy(recipe)
            model = self._supplies.model(recipe, run.weights(), prepared)
            for name in self._missing(recipe, run):
                writer.add_predictions(name, predict(recipe, model, prepared.splits[name], prepared))

    def _missing(self, recipe: Recipe, run: Run) -> list[str]:
        available = ["train", "test", *(["validation"] if recipe.data.validation else [])]
        return [name for name in self._keep if name in available and not run.has_predictions(name)]
