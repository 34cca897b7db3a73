"""The engine: recipes in, runs out.

This one trains one recipe after another. Whatever replaces it keeps the signature of `train`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from softtargets.exceptions import SofttargetsError
from softtargets.models import Classifier
from softtargets.recipes import Dataset, Recipe
from softtargets.runs import Run, RunStore, RunWriter
from softtargets.runs.provenance import environment, now
from softtargets.training.building import build_model
from softtargets.training.checking import check_runnable
from softtargets.training.interruption import graceful_interruption
from softtargets.training.loop import Diverged, Training
from softtargets.training.precision import float32_products
from softtargets.training.prediction import predict
from softtargets.training.preparation import Prepared, input_shape, prepare, with_noise
from softtargets.training.targets import Teacher
from softtargets.training.watching import Plan, Watcher
from softtargets.training.workers import helpers

KEEP = ("validation", "test")
CHECKPOINT_SECONDS = 30.0
_POLL_SECONDS = 0.2
_REPORT_SECONDS = 0.1


def train(
    recipes: Iterable[Recipe],
    store: RunStore,
    *,
    device: str = "auto",
    keep: Sequence[str] = KEEP,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    workers: int = 1,
) -> list[Run]:
    """Train every recipe that has no finished run yet, teachers first, and return the runs in order.

    keep:     the splits on which predictions are kept (those that the recipe's data has).
    workers:  processes that share the recipes out among them, this one included.
    Finished runs are reused; interrupted ones go on where they stopped; a recipe that another process is
    training is waited for. A diverged run comes back with status ``failed``.
    """
    recipes = list(recipes)
    engine = _Engine(store, choose_device(device), keep, data_dir, watcher or Watcher(), checkpoint_seconds)
    todo = engine.reuse(recipes)
    how = {"device": device, "keep": keep, "data_dir": data_dir, "checkpoint_seconds": checkpoint_seconds}
    with helpers(min(workers, len(todo)) - 1, train, list(todo.values()), store, **how):
        engine.train(todo)
    return [Run(store.root / recipe.id) for recipe in recipes]


def choose_device(name: str) -> torch.device:
    """The device for ``auto``, ``cpu``, ``cuda`` or ``cuda:1``, checked to exist."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise SofttargetsError(f"no such device: '{name}'; allowed: auto, cpu, cuda, cuda:0, ...") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise SofttargetsError(
            f"device '{name}' is not here: torch sees {torch.cuda.device_count()} CUDA devices"
        )
    if device.type not in ("cpu", "cuda"):
        raise SofttargetsError(f"device '{name}' is not supported; allowed: auto, cpu, cuda, cuda:0, ...")
    return device


class _Engine:
    """The state of one call of `train`: what is loaded, and what is being shown."""

    def __init__(
        self,
        store: RunStore,
        device: torch.device,
        keep: Sequence[str],
        data_dir: Path | None,
        watcher: Watcher,
        checkpoint_seconds: float,
    ) -> None:
        self.store = store
        self.device = device
        self.keep = keep
        self.data_dir = data_dir
        self.watcher = watcher
        self.checkpoint_seconds = checkpoint_seconds
        self._prepared: dict[Dataset, Prepared] = {}

    def reuse(self, recipes: list[Recipe]) -> dict[str, Recipe]:
        """Take what is finished already; return, in order, what must be trained, teachers included."""
        todo = _with_teachers(recipes)
        found = {recipe.id: run for recipe in todo.values() if (run := self.store.find(recipe)) is not None}
        self.watcher.planned(Plan(runs=len(todo), reused=len(found)))
        for key, run in found.items():
            self._complete(todo.pop(key), run)
        self._check(todo.values())
        return todo

    def _check(self, recipes: Iterable[Recipe]) -> None:
        checked: set[tuple[object, ...]] = set()
        for recipe in recipes:
            teacher = recipe.teacher
            key: tuple[object, ...] = (recipe.data, recipe.model, recipe.batch, recipe.augmentation)
            key += (teacher.data, teacher.augmentation) if teacher else ()
            if key not in checked:
                checked.add(key)
                taught = self._data(teacher.data) if teacher else None
                check_runnable(recipe, self._data(recipe.data), taught)

    def train(self, todo: dict[str, Recipe]) -> None:
        """Train until nothing is left to do, here or in other processes."""
        told = False
        while todo:
            done = 0
            for recipe in list(todo.values()):
                # A recipe whose teacher is still being trained elsewhere must wait with it.
                if recipe.teacher is None or recipe.teacher.id not in todo:
                    trained = self._attempt(recipe)
                    if trained is not None:
                        self._complete(todo.pop(recipe.id), trained)
                        done += 1
            if todo and not done:
                # Should the other process die, its lock is free again and we take over from its checkpoint.
                if not told:
                    self.watcher.waiting(next(iter(todo.values())))
                told = True
                time.sleep(_POLL_SECONDS)
            else:
                told = False

    def _attempt(self, recipe: Recipe) -> Run | None:
        """Train a recipe to the end, or return None when another process is doing so."""
        writer = self.store.claim(recipe)
        if writer is None:
            return None
        with writer:
            earlier = self.store.find(recipe) if writer.finished else None
            run = earlier or self._train_within_memory(recipe, writer)
        self.watcher.finished(run)
        return run

    def _train_within_memory(self, recipe: Recipe, writer: RunWriter) -> Run:
        try:
            return self._train(recipe, writer)
        except (MemoryError, RuntimeError) as error:
            # torch says it with one of its own errors, or with a plain RuntimeError from the CPU allocator.
            if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "allocate memory" in str(error):
                raise SofttargetsError(
                    f"run {recipe.id} does not fit into the memory of {self.device}; use a smaller batch or net"
                ) from error
            raise

    def _train(self, recipe: Recipe, writer: RunWriter) -> Run:
        prepared = self._noisy(recipe)
        if recipe.teacher is not None and Run(self.store.root / recipe.teacher.id).status != "finished":
            nothing = {"started": now(), "finished": now(), "seconds": 0.0, "images": 0}
            reason = f"its teacher {recipe.teacher.id} failed"
            return writer.fail(reason, [], environment(str(self.device)) | nothing)
        fork = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=fork), float32_products(recipe.precision):
            training = Training(recipe, prepared, self.device, self._teacher(recipe))
            begun: dict[str, float | int | str] = {"started": now(), "seconds": 0.0, "resumed": 0}
            checkpoint = writer.restore()
            if checkpoint is not None:
                training.restore(checkpoint)
                begun = checkpoint.progress["begun"]
                begun["resumed"] = int(begun["resumed"]) + 1
            clock = _Clock(float(begun["seconds"]))
            try:
                self._loop(training, writer, begun, clock)
            except Diverged as divergence:
                return writer.fail(
                    str(divergence), training.history, self._provenance(training, begun, clock)
                )
            kept = [name for name in self.keep if name in prepared.splits]
            return writer.finish(
                training.model.state_dict(),
                {name: predict(recipe, training.model, prepared.splits[name], prepared) for name in kept},
                training.history,
                self._provenance(training, begun, clock),
            )

    def _loop(
        self, training: Training, writer: RunWriter, begun: dict[str, float | int | str], clock: _Clock
    ) -> None:
        recipe = training.recipe

        def save() -> None:
            checkpoint = training.save()
            checkpoint.progress["begun"] = begun | {"seconds": clock.seconds}
            writer.checkpoint(checkpoint)

        self.watcher.started(recipe, training.step, training.total_steps)
        saved = reported = time.monotonic()
        images = training.images
        with graceful_interruption() as interruption:
            while not training.done:
                measured = len(training.history)
                training.advance()
                moment = time.monotonic()
                if moment - reported >= _REPORT_SECONDS or training.done:
                    self.watcher.progressed(recipe, training.step, training.images - images)
                    reported, images = moment, training.images
                if len(training.history) > measured:
                    self.watcher.epoch(recipe, training.history[-1])
                if interruption.requested:
                    save()
                    raise KeyboardInterrupt
                if moment - saved >= self.checkpoint_seconds:
                    save()
                    saved = time.monotonic()

    def _complete(self, recipe: Recipe, run: Run) -> None:
        """Add predictions that an earlier call did not keep, from the finished weights."""
        if run.status != "finished" or not self._missing(recipe, run):
            return
        while (writer := self.store.claim(recipe)) is None:
            time.sleep(_POLL_SECONDS)  # another process is adding predictions to the same run
        with writer, float32_products(recipe.precision):
            run = Run(run.directory)
            prepared = self._noisy(recipe)
            model = self._load_model(recipe, run, prepared)
            for name in self._missing(recipe, run):
                writer.add_predictions(name, predict(recipe, model, prepared.splits[name], prepared))

    def _missing(self, recipe: Recipe, run: Run) -> list[str]:
        available = ["train", "test", *(["validation"] if recipe.data.validation else [])]
        return [name for name in self.keep if name in available and not run.has_predictions(name)]

    def _teacher(self, recipe: Recipe) -> Teacher | None:
        if recipe.teacher is None:
            return None
        prepared = self._data(recipe.teacher.data)
        model = self._load_model(recipe.teacher, Run(self.store.root / recipe.teacher.id), prepared)
        return Teacher(recipe.teacher, model, prepared)

    def _load_model(self, recipe: Recipe, run: Run, prepared: Prepared) -> Classifier:
        model = build_model(recipe, input_shape(recipe, prepared), len(prepared.classes))
        model.load_state_dict(run.weights())
        return model.to(self.device)

    def _data(self, data: Dataset) -> Prepared:
        if data not in self._prepared:
            self._prepared[data] = prepare(data, self.device, self.data_dir)
        return self._prepared[data]

    def _noisy(self, recipe: Recipe) -> Prepared:
        return with_noise(self._data(recipe.data), recipe.noise, recipe.seed)

    def _provenance(
        self, training: Training, begun: dict[str, float | int | str], clock: _Clock
    ) -> dict[str, object]:
        return {
            **environment(str(self.device)),
            **begun,
            "finished": now(),
            "seconds": round(clock.seconds, 3),
            "images": training.images,
            "steps": training.step,
            "examples": {name: len(split) for name, split in training.prepared.splits.items()},
            "classes": list(training.prepared.classes),
            "parameters": sum(parameter.numel() for parameter in training.model.parameters()),
        }


class _Clock:
    """Seconds of work, those before an interruption included."""

    def __init__(self, before: float) -> None:
        self._start = time.monotonic() - before

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


def _with_teachers(recipes: Iterable[Recipe]) -> dict[str, Recipe]:
    """Each recipe once, after the teachers it depends on."""
    ordered: dict[str, Recipe] = {}
    for recipe in recipes:
        if recipe.teacher is not None:
            ordered |= {key: r for key, r in _with_teachers([recipe.teacher]).items() if key not in ordered}
        ordered.setdefault(recipe.id, recipe)
    return ordered
