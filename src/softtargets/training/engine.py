"""The engine: recipes in, runs out; runs of one shape are trained together."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from softtargets.exceptions import SofttargetsError
from softtargets.models import Classifier
from softtargets.recipes import Dataset, Recipe
from softtargets.runs import Run, RunStore, RunWriter
from softtargets.runs.provenance import environment, now
from softtargets.training.building import build_model
from softtargets.training.checking import check_runnable
from softtargets.training.course import Course
from softtargets.training.fleet import Fleet
from softtargets.training.interruption import Interruption, graceful_interruption
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Pack, Start
from softtargets.training.pack_loss import kind_of_loss
from softtargets.training.packing import Arrangement, arrangement, kind_of_run
from softtargets.training.precision import float32_products
from softtargets.training.prediction import predict
from softtargets.training.preparation import Prepared, input_shape, prepare, with_noise
from softtargets.training.saving import Saver
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
    sharing: int | None = None,
) -> list[Run]:
    """Train every recipe that has no finished run yet, teachers first, and return the runs in order.

    keep:     the splits on which predictions are kept (those that the recipe's data has).
    workers:  processes that share the recipes out among them, this one included.
    sharing:  how many processes there are in all, where others were started elsewhere: none takes more than its
              share at a time.
    Finished runs are reused; interrupted ones go on where they stopped; a recipe that another process is
    training is waited for. A diverged run comes back with status ``failed``.
    """
    recipes = list(recipes)
    engine = _Engine(
        store,
        choose_device(device),
        keep,
        data_dir,
        watcher or Watcher(),
        checkpoint_seconds,
        sharing or workers,
    )
    todo = engine.reuse(recipes)
    how = {"device": device, "keep": keep, "data_dir": data_dir, "checkpoint_seconds": checkpoint_seconds}
    how["sharing"] = sharing or workers
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


@dataclass
class _Work:
    """A run that this process is training."""

    recipe: Recipe
    writer: RunWriter
    start: Start
    begun: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checkpoint = self.start.checkpoint
        if checkpoint is None:
            self.begun = {"started": now(), "seconds": 0.0, "resumed": 0}
        else:
            self.begun = dict(checkpoint.progress["begun"])
            self.begun["resumed"] += 1


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
        sharing: int,
    ) -> None:
        self.store = store
        self.device = device
        self.keep = keep
        self.data_dir = data_dir
        self.watcher = watcher
        self.checkpoint_seconds = checkpoint_seconds
        self.sharing = sharing
        self._prepared: dict[Dataset, Prepared] = {}
        self._machineries: dict[tuple[object, ...], Machinery] = {}
        self._not_now: set[str] = set()  # waiting runs that could not join the present pack
        self._teachers: dict[str, Teacher] = {}
        self._limits: dict[tuple[object, ...], int] = {}  # packs that did not fit into memory were halved

    def reuse(self, recipes: list[Recipe]) -> dict[str, Recipe]:
        """Take what is finished already; return, in order, what must be trained, teachers included."""
        todo = _with_teachers(recipes)
        found = {recipe.id: run for recipe in todo.values() if (run := self.store.find(recipe)) is not None}
        left = {key: recipe for key, recipe in todo.items() if key not in found}
        self._check(left.values())
        images = {
            key: Course(recipe, len(self._data(recipe.data).splits["train"])).total_images
            for key, recipe in left.items()
        }
        self.watcher.planned(Plan(runs=len(todo), reused=len(found), images=images))
        for key, run in found.items():
            self._complete(todo[key], run)
            self.watcher.reused(run)
        return left

    def _check(self, recipes: Iterable[Recipe]) -> None:
        checked: set[tuple[object, ...]] = set()
        for recipe in recipes:
            teacher = recipe.teacher
            key: tuple[object, ...] = (recipe.data, recipe.model, recipe.batch, recipe.augmentation)
            key += (recipe.optimiser, recipe.noise, kind_of_loss(recipe))
            key += (teacher.data, teacher.augmentation) if teacher else ()
            if key not in checked:
                checked.add(key)
                taught = self._data(teacher.data) if teacher else None
                check_runnable(recipe, self._data(recipe.data), taught)

    def train(self, todo: dict[str, Recipe]) -> None:
        """Train until nothing is left to do, here or in other processes."""
        told = False
        while todo:
            left = len(todo)
            with ExitStack() as claims:
                works = self._claim(todo, claims)
                if works:
                    self._train_within_memory(works, todo, claims)
                    told = False
                    continue
            if todo and len(todo) == left:
                # Should the other process die, its lock is free again and we take over from its checkpoint.
                if not told:
                    self.watcher.waiting(next(iter(todo.values())))
                told = True
                time.sleep(_POLL_SECONDS)
            else:
                told = False

    def _claim(
        self, todo: dict[str, Recipe], claims: ExitStack, joining: Sequence[_Work] = ()
    ) -> list[_Work]:
        """The next pack: runs of one kind that no other process is training, as many as train well together.

        Or, for a pack in which runs have ended, others to join it.
        """
        works = list(joining)
        ours = {work.recipe.id for work in works}
        if not works:
            self._not_now.clear()
        kinds = self._ready_kinds(todo)
        ready = [todo[key] for key in kinds]
        width = self._width(works[0].recipe, kinds) if works else 1
        place = 0  # where those that others join are
        for recipe in ready:
            if recipe.id in ours or (works and kinds[recipe.id] != kinds[works[0].recipe.id]):
                continue
            if works and len(works) >= width:
                break
            writer = self.store.claim(recipe)
            if writer is None:
                self._not_now.add(recipe.id)
                continue
            claims.enter_context(writer)
            if writer.finished or self._is_orphan(recipe, writer):
                run = self.store.find(recipe)
                writer.release()
                assert run is not None
                self._conclude(todo, recipe, run)
                continue
            start = Start(recipe, self._noisy(recipe), None, writer.restore())
            if works and start.place != place:
                writer.release()
                self._not_now.add(recipe.id)
                continue
            if not works:
                width, place = self._width(recipe, kinds), start.place
            start.teacher = self._teacher(recipe)
            works.append(_Work(recipe, writer, start))
        return works

    def _width(self, recipe: Recipe, kinds: dict[str, tuple[object, ...]]) -> int:
        kind = kinds[recipe.id]
        alike = sum(other == kind for other in kinds.values())
        share = -(-alike // max(self.sharing, 1))
        return max(1, min(self._arrangement(recipe).runs, share, self._limits.get(kind, share)))

    def _arrangement(self, recipe: Recipe) -> Arrangement:
        prepared = self._data(recipe.data)
        with torch.device("meta"):  # shapes only: a large net costs nothing here
            model = build_model(recipe, input_shape(recipe, prepared), len(prepared.classes))
        return arrangement(recipe, sum(weight.numel() for weight in model.parameters()), self.device)

    def _machinery(self, recipe: Recipe) -> Machinery:
        kind = kind_of_run(recipe)
        if kind not in self._machineries:
            # Also a pack of one is a stack where larger ones are: so no run depends on who shared its pack.
            stacked = self._arrangement(recipe).stacked
            self._machineries[kind] = Machinery(recipe, self._data(recipe.data), self.device, stacked)
        return self._machineries[kind]

    def _is_orphan(self, recipe: Recipe, writer: RunWriter) -> bool:
        """Whether the teacher failed; the student then fails too."""
        if recipe.teacher is None or Run(self.store.root / recipe.teacher.id).status == "finished":
            return False
        nothing = {"started": now(), "finished": now(), "seconds": 0.0, "images": 0}
        reason = f"its teacher {recipe.teacher.id} failed"
        writer.fail(reason, [], environment(str(self.device)) | nothing)
        return True

    def _train_within_memory(self, works: list[_Work], todo: dict[str, Recipe], claims: ExitStack) -> None:
        width = len(works)
        try:
            self._train(works, todo, claims)
            return
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            width = max(width, len(works))
            if width == 1:
                raise SofttargetsError(
                    f"run {works[0].recipe.id} does not fit into the memory of {self.device}; use a smaller batch "
                    "or net"
                ) from error
            # What was not finished goes on from its last checkpoint, in packs of half the size.
            self._limits[kind_of_run(works[0].recipe)] = width // 2
        # Out here, where the error no longer holds on to the pack that was too large.
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _train(self, works: list[_Work], todo: dict[str, Recipe], claims: ExitStack) -> None:
        fork = [self.device] if self.device.type == "cuda" else []
        recipe = works[0].recipe
        self._saved = time.monotonic()
        self._told: set[str] = set()
        going_on: list[Pack] = []
        with (
            torch.random.fork_rng(devices=fork),
            float32_products(recipe.precision),
            graceful_interruption() as interruption,
        ):
            while works:
                pack = self._start(works, going_on)
                left = self._loop(pack, works, todo, interruption)
                going_on = pack.still(left) if isinstance(pack, Fleet) else []
                del pack  # before the next one is built
                try:
                    # In place: if what joins does not fit into memory, all of them go on in smaller packs.
                    works[:] = self._claim(todo, claims, [works[run] for run in left]) if left else []
                    if interruption.requested and works:
                        raise KeyboardInterrupt
                except BaseException:
                    self._keep(works, left)
                    raise

    def _start(self, works: list[_Work], going_on: list[Pack]) -> Pack | Fleet:
        machinery = self._machinery(works[0].recipe)
        starts = [work.start for work in works]
        pack: Pack | Fleet
        try:
            if machinery.stacked:
                pack = Pack(starts, self.device, machinery)
            else:
                pack = Fleet(starts[len(going_on) :], self.device, machinery, going_on)
        except BaseException:
            self._keep(works, range(len(works)))
            raise
        for work, slot in zip(works, pack.slots, strict=True):
            work.start.checkpoint = None  # its tensors are in the pack now
            if work.recipe.id not in self._told:
                self._told.add(work.recipe.id)
                self.watcher.started(work.recipe, slot.step, slot.course.total_steps)
        return pack

    def _keep(self, works: list[_Work], left: Iterable[int]) -> None:
        """Write what is in memory only: the states of runs between two packs."""
        for work in (works[run] for run in left if run < len(works)):
            checkpoint = work.start.checkpoint
            if checkpoint is not None and "begun" not in checkpoint.progress:
                checkpoint.progress["begun"] = dict(work.begun)
                work.writer.checkpoint(checkpoint)

    def _loop(
        self, pack: Pack | Fleet, works: list[_Work], todo: dict[str, Recipe], interruption: Interruption
    ) -> list[int]:
        """Train a pack to its end, or until others could take the place of runs that have ended: returns the rest."""
        with Saver(self.device) as saver:
            return self._steps(pack, works, todo, saver, interruption)

    def _steps(
        self,
        pack: Pack | Fleet,
        works: list[_Work],
        todo: dict[str, Recipe],
        saver: Saver,
        interruption: Interruption,
    ) -> list[int]:
        clock = _Clock(works)
        reported = time.monotonic()
        width = max(len(works), self._width(works[0].recipe, self._ready_kinds(todo)))
        shown = [slot.images for slot in pack.slots]
        active = list(range(len(works)))
        while active:
            due = pack.advance()
            moment = time.monotonic()
            if moment - reported >= _REPORT_SECONDS or due:
                for run in active:
                    slot = pack.slots[run]
                    self.watcher.progressed(slot.recipe, slot.step, slot.images - shown[run])
                    shown[run] = slot.images
                reported = moment
            if due:
                pack.measure(due)
                clock.tick(active)
                for run in due:
                    if pack.slots[run].failure is None:
                        self.watcher.epoch(works[run].recipe, pack.slots[run].history[-1])
                ended = [run for run in due if pack.slots[run].done]
                if ended:
                    saver.wait()  # or a late checkpoint would lie beside a finished run
                for run in ended:
                    active.remove(run)
                    self._end(pack, run, works[run], len(works), todo)
            if interruption.requested:
                self._save(pack, active, works, clock, saver)
                saver.wait()
                raise KeyboardInterrupt
            if active and moment - self._saved >= self.checkpoint_seconds and not saver.busy:
                self._save(pack, active, works, clock, saver)
                self._saved = time.monotonic()
            if active and len(active) < width and pack.place == 0 and self._others_wait(works, todo):
                clock.tick(active)
                for run in active:
                    works[run].start.checkpoint = pack.save(run)
                break
        saver.wait()
        return active

    def _others_wait(self, works: list[_Work], todo: dict[str, Recipe]) -> bool:
        """Whether runs of the same kind could join, at the beginning of an epoch."""
        ours = {work.recipe.id for work in works}
        kind = kind_of_run(works[0].recipe)
        return any(
            key not in ours
            and key not in self._not_now
            and other == kind
            and not self.store.is_claimed(todo[key])
            for key, other in self._ready_kinds(todo).items()
        )

    def _ready_kinds(self, todo: dict[str, Recipe]) -> dict[str, tuple[object, ...]]:
        """The kinds of runs that could be trained now: one whose teacher is still being trained must wait with it."""
        return {
            key: kind_of_run(recipe)
            for key, recipe in todo.items()
            if recipe.teacher is None or recipe.teacher.id not in todo
        }

    def _save(
        self, pack: Pack | Fleet, active: list[int], works: list[_Work], clock: _Clock, saver: Saver
    ) -> None:
        clock.tick(active)
        jobs = []
        for run in active:
            checkpoint = pack.save(run)
            checkpoint.progress["begun"] = dict(works[run].begun)
            jobs.append((works[run].writer, checkpoint))
        saver.save(jobs)

    def _end(self, pack: Pack | Fleet, run: int, work: _Work, together: int, todo: dict[str, Recipe]) -> None:
        """Write what a run has come to, and give it back."""
        recipe, slot, prepared = work.recipe, pack.slots[run], work.start.prepared
        weights = pack.weights(run)
        provenance = {
            **environment(str(self.device)),
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
            model = self._model(recipe, weights, prepared)
            provenance["parameters"] = sum(weight.numel() for weight in model.parameters())
            kept = [name for name in self.keep if name in prepared.splits]
            said = {name: predict(recipe, model, prepared.splits[name], prepared) for name in kept}
            concluded = work.writer.finish(weights, said, slot.history, provenance)
        work.writer.release()
        self._conclude(todo, recipe, concluded)

    def _conclude(self, todo: dict[str, Recipe], recipe: Recipe, run: Run) -> None:
        todo.pop(recipe.id)
        self._complete(recipe, run)
        self.watcher.finished(run)

    def _complete(self, recipe: Recipe, run: Run) -> None:
        """Add predictions that an earlier call did not keep, from the finished weights."""
        if run.status != "finished" or not self._missing(recipe, run):
            return
        while (writer := self.store.claim(recipe)) is None:
            time.sleep(_POLL_SECONDS)  # another process is adding predictions to the same run
        with writer, float32_products(recipe.precision):
            run = Run(run.directory)
            prepared = self._noisy(recipe)
            model = self._model(recipe, run.weights(), prepared)
            for name in self._missing(recipe, run):
                writer.add_predictions(name, predict(recipe, model, prepared.splits[name], prepared))

    def _missing(self, recipe: Recipe, run: Run) -> list[str]:
        available = ["train", "test", *(["validation"] if recipe.data.validation else [])]
        return [name for name in self.keep if name in available and not run.has_predictions(name)]

    def _teacher(self, recipe: Recipe) -> Teacher | None:
        if recipe.teacher is None:
            return None
        key = recipe.teacher.id
        if key not in self._teachers:
            prepared = self._data(recipe.teacher.data)
            weights = Run(self.store.root / key).weights()
            self._teachers[key] = Teacher(
                recipe.teacher, self._model(recipe.teacher, weights, prepared), prepared
            )
        return self._teachers[key]

    def _model(self, recipe: Recipe, weights: dict[str, torch.Tensor], prepared: Prepared) -> Classifier:
        model = build_model(recipe, input_shape(recipe, prepared), len(prepared.classes))
        model.load_state_dict(weights)
        return model.to(self.device)

    def _data(self, data: Dataset) -> Prepared:
        if data not in self._prepared:
            self._prepared[data] = prepare(data, self.device, self.data_dir)
        return self._prepared[data]

    def _noisy(self, recipe: Recipe) -> Prepared:
        return with_noise(self._data(recipe.data), recipe.noise, recipe.seed)


def _is_out_of_memory(error: BaseException) -> bool:
    # torch says it with one of its own errors, or with a plain RuntimeError of its allocator or of a library.
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(words in str(error) for words in ("allocate memory", "out of memory", "ALLOC_FAILED"))


class _Clock:
    """Shares the seconds of a pack out among its runs: those of all runs add up to the time it took."""

    def __init__(self, works: list[_Work]) -> None:
        self._works = works
        self._last = time.monotonic()

    def tick(self, active: list[int]) -> None:
        """The time since the last call was spent on these runs."""
        moment = time.monotonic()
        for run in active:
            self._works[run].begun["seconds"] += (moment - self._last) / len(active)
        self._last = moment


def _with_teachers(recipes: Iterable[Recipe]) -> dict[str, Recipe]:
    """Each recipe once, after the teachers it depends on."""
    ordered: dict[str, Recipe] = {}
    for recipe in recipes:
        if recipe.teacher is not None:
            ordered |= {key: r for key, r in _with_teachers([recipe.teacher]).items() if key not in ordered}
        ordered.setdefault(recipe.id, recipe)
    return ordered
