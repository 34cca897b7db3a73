"""The loop over packs: steps, measurements, checkpoints, and others in the place of runs that have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import ExitStack

import torch

from softtargets.training.claiming import Claims
from softtargets.training.ending import Endings
from softtargets.training.fleet import Fleet
from softtargets.training.interruption import Interruption, graceful_interruption
from softtargets.training.pack import Pack
from softtargets.training.precision import float32_products
from softtargets.training.saving import Saver
from softtargets.training.supplies import Supplies
from softtargets.training.watching import Watcher
from softtargets.training.work import Clock, Work

_REPORT_SECONDS = 0.1


class Loop:
    """Trains packs of one kind, one after another, until no run of that kind is left that could join."""

    def __init__(
        self,
        claims: Claims,
        supplies: Supplies,
        endings: Endings,
        watcher: Watcher,
        checkpoint_seconds: float,
    ) -> None:
        self._claims = claims
        self._supplies = supplies
        self._endings = endings
        self._watcher = watcher
        self._checkpoint_seconds = checkpoint_seconds
        self._saved = 0.0  # when checkpoints were last written
        self._told: set[str] = set()  # runs that the watcher knows to have started

    def train(self, works: list[Work], locks: ExitStack) -> None:
        """Train these runs and those that join them; `works` is always the pack of the moment."""
        device = self._supplies.device
        fork = [device] if device.type == "cuda" else []
        self._saved = time.monotonic()
        self._told = set()
        going_on: list[Pack] = []
        with (
            torch.random.fork_rng(devices=fork),
            float32_products(works[0].recipe.precision),
            graceful_interruption() as interruption,
        ):
            while works:
                pack = self._start(works, going_on)
                with Saver(device) as saver:
                    left = self._steps(pack, works, saver, interruption)
                going_on = pack.still(left) if isinstance(pack, Fleet) else []
                del pack  # before the next one is built
                try:
                    # In place: if what joins does not fit into memory, all of them go on in smaller packs.
                    works[:] = self._claims.take(locks, [works[run] for run in left]) if left else []
                    if interruption.requested and works:
                        raise KeyboardInterrupt
                except BaseException:
                    _keep(works, left)
                    raise

    def _start(self, works: list[Work], going_on: list[Pack]) -> Pack | Fleet:
        machinery = self._supplies.machinery(works[0].recipe)
        starts = [work.start for work in works]
        pack: Pack | Fleet
        try:
            if machinery.stacked:
                pack = Pack(starts, self._supplies.device, machinery)
            else:
                pack = Fleet(starts[len(going_on) :], self._supplies.device, machinery, going_on)
        except BaseException:
            _keep(works, range(len(works)))
            raise
        for work, slot in zip(works, pack.slots, strict=True):
            work.start.checkpoint = None  # its tensors are in the pack now
            if work.recipe.id not in self._told:
                self._told.add(work.recipe.id)
                self._watcher.started(work.recipe, slot.step, slot.course.total_steps)
        return pack

    def _steps(
        self, pack: Pack | Fleet, works: list[Work], saver: Saver, interruption: Interruption
    ) -> list[int]:
        """Train a pack to its end, or until others could take the place of runs that have ended: returns the rest."""
        clock = Clock(works)
        reported = time.monotonic()
        width = max(len(works), self._claims.width(works[0].recipe))
        shown = [slot.images for slot in pack.slots]
        active = list(range(len(works)))
        while active:
            due = pack.advance()
            moment = time.monotonic()
            if moment - reported >= _REPORT_SECONDS or due:
                for run in active:
                    slot = pack.slots[run]
                    self._watcher.progressed(slot.recipe, slot.step, slot.images - shown[run])
                    shown[run] = slot.images
                reported = moment
            if due:
                pack.measure(due)
                clock.tick(active)
                for run in due:
                    if pack.slots[run].failure is None:
                        self._watcher.epoch(works[run].recipe, pack.slots[run].history[-1])
                ended = [run for run in due if pack.slots[run].done]
                if ended:
                    saver.wait()  # or a late checkpoint would lie beside a finished run
                for run in ended:
                    active.remove(run)
                    self._endings.end(pack, run, works[run], len(works), self._claims.todo)
            if interruption.requested:
                _save(pack, active, works, clock, saver)
                saver.wait()
                raise KeyboardInterrupt
            if active and moment - self._saved >= self._checkpoint_seconds and not saver.busy:
                _save(pack, active, works, clock, saver)
                self._saved = time.monotonic()
            if active and len(active) < width and pack.place == 0 and self._claims.others_wait(works):
                clock.tick(active)
                for run in active:
                    works[run].start.checkpoint = pack.save(run)
                break
        saver.wait()
        return active


def _save(pack: Pack | Fleet, active: list[int], works: list[Work], clock: Clock, saver: Saver) -> None:
    """Write checkpoints of the runs of a pack."""
    clock.tick(active)
    jobs = []
    for run in active:
        checkpoint = pack.save(run)
        checkpoint.progress["begun"] = dict(works[run].begun)
        jobs.append((works[run].writer, checkpoint))
    saver.save(jobs)


def _keep(works: list[Work], left: Iterable[int]) -> None:
    """Write what is in memory only: the states of runs between two packs."""
    for work in (works[run] for run in left if run < len(works)):
        checkpoint = work.start.checkpoint
        if checkpoint is not None and "begun" not in checkpoint.progress:
            checkpoint.progress["begun"] = dict(work.begun)
            work.writer.checkpoint(checkpoint)
