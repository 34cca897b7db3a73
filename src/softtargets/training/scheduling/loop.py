"""The loop over packs: steps, measurements, checkpoints, and others in the place of runs that have ended.

Where other processes train all that is left, it waits for them; where a pack does not fit into memory, it halves it.
"""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from threading import Event

import torch

from softtargets.exceptions import SofttargetsError
from softtargets.runs import note_part
from softtargets.training.distributed.leading import Leader, Nobody
from softtargets.training.events import Watcher
from softtargets.training.interruption import graceful_interruption
from softtargets.training.pack import Fleet, Pack
from softtargets.training.precision import float32_products
from softtargets.training.saving import Saver
from softtargets.training.scheduling.finisher import POLL_SECONDS, Finisher, Work
from softtargets.training.scheduling.queue import Queue
from softtargets.training.scheduling.resources import Resources

_REPORT_SECONDS = 0.1
# The host gives a GPU its work ahead of time, up to two epochs of it; shortly before the end it waits for each step, so
# that the end is that of the GPU too.
_CLOSE_TO_THE_END = 30.0


class _TimeIsUpError(Exception):
    """All that was under way is on disk, and nothing more is to be begun."""


@dataclass
class Loop:
    """Trains all that a queue has, pack after pack, `_until` a moment comes; what others train it may `_wait` for."""

    _queue: Queue
    _resources: Resources
    _finisher: Finisher
    _watcher: Watcher
    _checkpoint_seconds: float
    _until: float | None = None
    _wait: bool = True
    _stop: Event | None = None  # set by others who ask for the end, as Ctrl-C does
    _others: Leader = field(default_factory=Nobody)  # processes that train every run with this one
    _saved: float = 0.0  # when checkpoints were last written
    _told: set[str] = field(default_factory=set)  # runs that the watcher knows to have started

    def run(self) -> None:
        """Train until nothing is left to do, here or in other processes, or the time is up."""
        with suppress(_TimeIsUpError):
            self._run()

    def _run(self) -> None:
        todo, told = self._queue.todo, False
        while todo:
            if self._stop is not None and self._stop.is_set():
                raise KeyboardInterrupt
            if self._time_is_up():
                return
            left = len(todo)
            with ExitStack() as locks:
                if works := self._queue.take(locks):
                    self._train_within_memory(works, locks)
            if works or len(todo) < left:  # too many for the memory, or some have ended, here or elsewhere
                told = False
                continue
            if not self._wait:
                return
            # Should the other process die, its lock is free again and we take over from its checkpoint.
            if not told:
                self._watcher.waiting(next(iter(todo.values())))
            told = True
            if self._others.is_asked:
                self._others.stopping()
                raise KeyboardInterrupt
            time.sleep(POLL_SECONDS)

    def _time_is_up(self) -> bool:
        return self._until is not None and time.monotonic() >= self._until

    def _look_at_the_clock(self, asked_to_stop: Event) -> None:
        """Raise if this is the end: somebody has asked for it, or the time is up."""
        if asked_to_stop.is_set():
            self._others.stopping()
            raise KeyboardInterrupt
        if self._time_is_up():
            raise _TimeIsUpError

    def _train_within_memory(self, works: list[Work], locks: ExitStack) -> None:
        """Train these runs; if they take more memory than was estimated, later packs of their kind are smaller."""
        width, device = len(works), self._resources.device
        try:
            self._train(works, locks)
            return
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            width = max(width, len(works))
            if width == 1:
                raise SofttargetsError(
                    f"run {works[0].recipe.id} does not fit into the memory of {device}; use a smaller batch or network"
                ) from error
            # What was not finished goes on from its last checkpoint, in packs of half the size.
            self._queue.halve(works[0].recipe, width)
        # Out here, where the error no longer holds on to the pack that was too large.
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()

    def _train(self, works: list[Work], locks: ExitStack) -> None:
        """Train these runs and those that join them; `works` is always the pack of the moment."""
        device = self._resources.device
        fork = [device] if device.type == "cuda" else []
        self._saved = time.monotonic()
        self._told = set()
        going_on: list[Pack] = []
        with (
            torch.random.fork_rng(devices=fork),
            float32_products(works[0].recipe.precision),
            graceful_interruption(self._stop, self._others.patience) as asked_to_stop,
        ):
            while works:
                pack = self._start(works, going_on)
                with Saver(device) as saver:
                    left = self._steps(_Stretch(pack, works, saver), asked_to_stop)
                self._others.over()
                going_on = pack.still(left) if isinstance(pack, Fleet) else []
                del pack  # before the next one is built
                try:
                    # In place: if what joins does not fit into memory, all of them go on in smaller packs.
                    works[:] = self._queue.take(locks, [works[run] for run in left]) if left else []
                    if works:
                        self._look_at_the_clock(asked_to_stop)
                except BaseException:
                    _keep(works)
                    raise

    def _start(self, works: list[Work], going_on: list[Pack]) -> Pack | Fleet:
        machinery = self._resources.machinery(works[0].recipe)
        try:
            self._others.begin(works[0])
            new = works[len(going_on) :]
            pack = Pack(works, machinery) if machinery.stacked else Fleet(new, machinery, going_on)
        except BaseException:
            _keep(works)
            raise
        self._others.begun(pack)
        for work, slot in zip(works, pack.slots, strict=True):
            self._others.note(work.begun)
            note_part(work.begun, work.begun["resumed"] > 0, str(self._resources.device))
            work.checkpoint = None  # its tensors are in the pack now
            if work.recipe.id not in self._told:
                self._told.add(work.recipe.id)
                self._watcher.started(work.recipe, slot.step, slot.course.total_steps)
        return pack

    def _steps(self, stretch: _Stretch, asked_to_stop: Event) -> list[int]:
        """Train a pack to its end, or until others could take the place of runs that have ended: returns the rest."""
        works, active = stretch.works, stretch.active
        width = max(len(works), self._queue.width(works[0].recipe))
        while active:
            self._others.step()
            due = stretch.pack.advance()
            moment = time.monotonic()
            stretch.begun()
            stretch.report(self._watcher, moment, at_once=bool(due))
            if due:
                self._measure(stretch, due)
            self._keep_step(moment)
            if self._others.is_asked:
                asked_to_stop.set()
            if asked_to_stop.is_set() or (active and self._time_is_up()):
                stretch.save()
                stretch.saver.wait()
                self._look_at_the_clock(asked_to_stop)
            self._save_if_due(stretch, moment)
            if 0 < len(active) < width and stretch.pack.place == 0 and self._queue.others_wait(works):
                stretch.keep()
                break
        stretch.saver.wait()
        return active

    def _keep_step(self, moment: float) -> None:
        """Wait for the device where the end is near."""
        device = self._resources.device
        if device.type == "cuda" and self._until is not None and self._until - moment < _CLOSE_TO_THE_END:
            torch.cuda.synchronize(device)

    def _save_if_due(self, stretch: _Stretch, moment: float) -> None:
        late = moment - self._saved >= self._checkpoint_seconds
        if late and stretch.active and not stretch.saver.busy:
            stretch.save()
            self._saved = time.monotonic()

    def _measure(self, stretch: _Stretch, due: list[int]) -> None:
        """Measure these runs, and write what those have come to that are done."""
        pack, works = stretch.pack, stretch.works
        pack.measure(due)
        self._others.rest()
        stretch.tick()
        for run in due:
            if pack.slots[run].failure is None:
                self._watcher.epoch(works[run].recipe, pack.slots[run].history[-1])
        ended = [run for run in due if pack.slots[run].done]
        if ended:
            stretch.saver.wait()  # or a late checkpoint would lie beside a finished run
        for run in ended:
            stretch.active.remove(run)
            self._finisher.end(pack, run, works[run], len(works), self._queue.todo)


class _Stretch:
    """One pack from its first step until it ends or others join, with the time and work of its runs.

    The seconds of a pack are shared out among its `active` runs: those of all runs add up to the time it took.
    """

    def __init__(self, pack: Pack | Fleet, works: list[Work], saver: Saver) -> None:
        self.pack, self.works, self.saver = pack, works, saver
        self.active = list(range(len(works)))
        self._shown = [slot.units for slot in pack.slots]
        self._ticked = self._reported = time.monotonic()
        self._stepped = False

    def begun(self) -> None:
        """The first step is taken: the time until then was set-up."""
        if not self._stepped:
            self._stepped = True
            self.tick("setup_seconds")

    def tick(self, also: str = "") -> None:
        """The time since the last call was spent on the active runs."""
        moment, waited = time.monotonic(), self.pack.waited()
        for run in self.active:
            begun = self.works[run].begun
            for key in filter(None, ("seconds", also)):
                begun[key] += (moment - self._ticked) / len(self.active)
            if waited is not None:
                begun["waited_seconds"] = begun.get("waited_seconds", 0.0) + waited / len(self.active)
        self._ticked = moment

    def report(self, watcher: Watcher, moment: float, at_once: bool) -> None:
        """Tell of the work since the last report, if that was a while ago."""
        if at_once or moment - self._reported >= _REPORT_SECONDS:
            for run in self.active:
                slot = self.pack.slots[run]
                watcher.progressed(slot.recipe, slot.step, slot.units - self._shown[run])
                self._shown[run] = slot.units
            self._reported = moment

    def save(self) -> None:
        """Write checkpoints of the active runs."""
        self.tick()
        jobs = []
        for run in self.active:
            checkpoint = self.pack.save(run)
            checkpoint.progress["begun"] = dict(self.works[run].begun)
            jobs.append((self.works[run].writer, checkpoint))
        self.saver.save(jobs)

    def keep(self) -> None:
        """Hold on to the states of the active runs, which go on in another pack."""
        self.tick()
        for run in self.active:
            self.works[run].checkpoint = self.pack.save(run)


def _is_out_of_memory(error: BaseException) -> bool:
    # torch says it with one of its own errors, or with a plain RuntimeError of its allocator or of a library.
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(words in str(error) for words in ("allocate memory", "out of memory", "ALLOC_FAILED"))


def _keep(works: list[Work]) -> None:
    """Write what is in memory only: the states of runs between two packs."""
    for work in works:
        checkpoint = work.checkpoint
        if checkpoint is not None and "begun" not in checkpoint.progress:
            checkpoint.progress["begun"] = dict(work.begun)
            work.writer.checkpoint(checkpoint)
