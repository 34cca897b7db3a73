"""The executor that gives runs to the workers of a Ray cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.executors.executor import Executor
from softtargets.executors.ray.carrying import head_store, probing
from softtargets.executors.ray.cluster import Cluster
from softtargets.executors.ray.deaths import RETRIES, Deaths
from softtargets.executors.ray.head import Call, Head
from softtargets.executors.ray.orders import Place
from softtargets.executors.ray.staff import Staff
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training import (
    CHECKPOINT_SECONDS,
    KEEP,
    Keep,
    Plan,
    Standing,
    Watcher,
    cores,
    graceful_interruption,
    lacking_predictions,
    standing,
    train,
    watching,
)

DATA = "SOFTTARGETS_DATA"


@dataclass
class RayExecutor(Executor):
    """The workers of a Ray cluster, one per GPU, or per so many cores where there is none or none is wanted.

    address:          HOST:PORT of a running cluster, or ``auto`` for that of this machine. Without it that of
                      RAY_ADDRESS; without that a Ray of our own is started on this machine and ended afterwards.
    device:           what each worker trains on: auto (a GPU if the cluster has any), cuda or cpu.
    workers:          how many; without it, as many as the cluster has room for.
    cpus_per_worker:  cores, and torch's threads, of each.
    gpus_per_worker:  1, or a share of a GPU.
    memory_per_worker: gigabytes that Ray sets aside for each.
    retries:          how often a run whose worker died is tried again without getting any further.
    carry:            runs travel through Ray although workers see the directory of runs.

    Without an entered executor, each call connects, starts workers and sends them home:

        with RayExecutor("auto") as engine:
            runs = engine(recipes, store)
    """

    here: ClassVar[bool] = False
    address: str | None = None
    device: str | None = None
    workers: int | None = None
    cpus_per_worker: int = 1
    gpus_per_worker: float = 1.0
    memory_per_worker: float | None = None
    retries: int = RETRIES
    carry: bool = False
    _cluster: Cluster | None = field(default=None, init=False, repr=False)
    _staff: Staff | None = field(default=None, init=False, repr=False)
    _entered: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.gpus_per_worker <= 1:
            raise SofttargetsError(
                f"must be above 0 and at most 1, not {self.gpus_per_worker:g}: one run trains on one GPU",
                argument="gpus_per_worker",
            )
        if self.cpus_per_worker < 1:
            raise SofttargetsError(
                f"must be at least 1, not {self.cpus_per_worker}", argument="cpus_per_worker"
            )

    def __enter__(self) -> RayExecutor:
        self._entered = True
        return self

    def __call__(
        self,
        recipes: Iterable[Recipe],
        store: RunStore,
        *,
        device: str = "auto",
        keep: Keep = KEEP,
        data_dir: Path | None = None,
        watcher: Watcher | None = None,
        progress: bool | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        workers: int | None = None,
        until: float | None = None,
        wait: bool = True,
        afresh: Collection[str] = (),
        **_: Any,
    ) -> list[Run]:
        """Train as `softtargets.training.train` does; what is said there of devices and processes is the executor's.

        A run whose workers died too often is left out: the others are trained, and an error names it at the end.
        """
        recipes, watcher = list(recipes), watching(watcher, progress)
        ours = head_store(store.root.absolute())
        stands = standing(recipes, ours, lambda run: run.id in afresh and run.is_light)
        stands.check_teachers()
        kept = _kept(keep, stands.todo)
        lacking = _lacking(stands, kept)
        todo = {key: one for key, one in stands.todo.items() if key in stands.left or key in lacking}
        opening = _Opening(stands, watcher)
        if not todo:
            opening({})
            return [Run(store.root / recipe.id) for recipe in recipes]
        again = frozenset([*afresh, *stands.again])
        call = Call(kept, again, checkpoint_seconds, until, wait)
        head = Head(ours, todo, call, watcher, Deaths(self.retries), opening, frozenset(lacking))
        with self._staff_for(device, workers, watcher) as staff, probing(ours) as probe:
            place = self._place(staff, ours.root, data_dir)
            staff.gather(len(todo), place, probe, carry=self.carry or not ours.locks_files)
            with graceful_interruption() as asked:
                head.run(staff, asked)
        if todo and todo.keys() <= lacking and (until is None or time.monotonic() < until):
            # Only workers that see the directory of runs can add to finished ones.
            train(list(todo.values()), ours, keep=kept, data_dir=data_dir, progress=False)
            todo.clear()
        if head.given_up:
            raise SofttargetsError(_given_up(head, len(stands.todo)))
        if todo:
            left = [recipe for key, recipe in todo.items() if key not in lacking]
            raise Unfinished([run for recipe in recipes if (run := store.find(recipe))], left)
        return [Run(store.root / recipe.id) for recipe in recipes]

    def reach(self, device: str, workers: int | None) -> tuple[str, int]:
        """Of the workers; connects to the cluster."""
        _, size, _, sized = self._found(device, workers)
        return ("cuda" if "GPU" in sized else "cpu"), size

    def close(self) -> None:
        """Send the workers home and disconnect; a Ray that we have started ends."""
        self._entered = False
        staff, self._staff = self._staff, None
        cluster, self._cluster = self._cluster, None
        try:
            if staff is not None:
                staff.dismiss()
        finally:
            if cluster is not None:
                cluster.close()

    def _found(self, device: str, workers: int | None) -> tuple[Cluster, int, int, dict[str, float]]:
        """The cluster, how many workers are wanted, how many it has room for, and what each needs."""
        if self._cluster is None:
            asked = (self.workers or workers or 1) * self.cpus_per_worker
            self._cluster = Cluster.connect(self.address, max(asked, cores()))
        sized = self._sized(self._cluster, self.device or device)
        room = self._cluster.room_for(sized)
        if not (size := self.workers or workers or room):
            needs = " and ".join(f"{amount:g} {name}" for name, amount in sized.items())
            raise SofttargetsError(f"a worker needs {needs}, which no node of the cluster has")
        return self._cluster, size, room, sized

    @contextmanager
    def _staff_for(self, device: str, workers: int | None, watcher: Watcher) -> Iterator[Staff]:
        """Workers of the right number and size: those of the last call, or others."""
        try:
            cluster, size, room, sized = self._found(device, workers)
            if self._staff is None or (self._staff.size, self._staff.sized) != (size, sized):
                if self._staff is not None:
                    self._staff.dismiss()
                self._staff = Staff(cluster, size, sized)
                if size > room:
                    watcher.noted(
                        f"{size} workers were requested, but the cluster has room for {room}; the others start when "
                        "there is room."
                    )
            yield self._staff
        finally:
            if not self._entered:
                self.close()

    def _sized(self, cluster: Cluster, device: str) -> dict[str, float]:
        """What a worker needs, by Ray's names."""
        if device not in ("auto", "cpu", "cuda"):
            raise SofttargetsError(
                f"device '{device}' cannot be used with Ray, which gives each worker its own device; write auto, "
                "cuda or cpu"
            )
        gpus = 0.0 if device == "cpu" else cluster.has("GPU")
        if device == "cuda" and not gpus:
            raise SofttargetsError(
                "device 'cuda': the Ray cluster has no GPU; start its nodes with `ray start --num-gpus N`, or train on "
                "--device cpu"
            )
        sized = {"CPU": float(self.cpus_per_worker)}
        if gpus:
            sized["GPU"] = self.gpus_per_worker
        if self.memory_per_worker:
            sized["memory"] = self.memory_per_worker * 1e9
        return sized

    def _place(self, staff: Staff, root: Path, data_dir: Path | None) -> Place:
        on_gpu = "GPU" in staff.sized
        hint = os.environ.get(DATA)
        return Place(
            store=root,
            device="cuda" if on_gpu else "cpu",
            threads=self.cpus_per_worker,
            data_dir=None if data_dir is None else data_dir.absolute(),
            data_hint=Path(hint).absolute() if hint else None,
            beside=max(1, round(1 / self.gpus_per_worker)) if on_gpu else staff.most_on_a_node(),
        )


@dataclass(frozen=True)
class _Opening:
    """What a watcher hears first, as soon as it is known how much work there is."""

    stands: Standing
    watcher: Watcher

    def __call__(self, units: Mapping[str, int]) -> None:
        found, left = self.stands.found, self.stands.left
        told = {key: count for key, count in units.items() if key in left}
        self.watcher.planned(Plan(runs=len(self.stands.todo), reused=len(found), units=told))
        for sentence in self.stands.notes:
            self.watcher.noted(sentence)
        for run in found.values():
            self.watcher.reused(run)


def _kept(keep: Keep, todo: Mapping[str, Recipe]) -> dict[str, tuple[str, ...]]:
    """What is kept of each run, by its id."""
    if isinstance(keep, Mapping):
        return {key: tuple(keep.get(key, ())) for key in todo}
    return dict.fromkeys(todo, tuple(keep))


def _lacking(stands: Standing, keep: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Finished runs that lack predictions which are to be kept."""
    return {
        key
        for key, run in stands.found.items()
        if run.status == "finished"
        and not run.is_light
        and lacking_predictions(run, stands.todo[key], keep[key])
    }


def _given_up(head: Head, runs: int) -> str:
    """What is said at the end of runs that lost too many workers."""
    named = [f"run {key} ({why})" for key, why in head.given_up.items()]
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    were = "was" if len(named) == 1 else "were"
    others = runs - len(head.todo)
    return (
        f"{', '.join(named[:3])}{more} {were} left out. The other {others} of {runs} runs are finished; the same call "
        "tries again"
    )
