"""One case: ours and its rivals train in turns on the same images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from softtargets.bench.failing import explain, release
from softtargets.bench.measurement import Speed
from softtargets.bench.timing import wait_for, whole
from softtargets.bench.training.contestants import Contestant, Eager, Ours, engine_would, prepared_for
from softtargets.bench.training.grid import TEST_IMAGES_PER_BATCH
from softtargets.bench.training.images import Images
from softtargets.bench.training.nets import CLASSES, SUBJECTS
from softtargets.bench.training.results import OURS, Case, CaseResult, Entry


@dataclass(frozen=True)
class Bench:
    """What all cases of one session share."""

    device: torch.device
    session: int
    seconds: float


class Round:
    """The cases of one net: rivals are set up once and take a turn before the first case and after each."""

    def __init__(self, setting: tuple[str, int, int], rivals: Sequence[str], bench: Bench) -> None:
        net, batch, batches = setting
        subject = SUBJECTS[net]
        self._bench = bench
        images = Images.random(
            subject.shape, batch * batches, TEST_IMAGES_PER_BATCH * batches, CLASSES, bench.device
        )
        self._prepared = prepared_for(subject.recipe, images)
        self._rivals = [Stand(name, partial(Eager, name, subject, batch, images), bench) for name in rivals]
        for rival in self._rivals:
            rival.turn()

    def measure(self, case: Case) -> CaseResult:
        """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
        device = self._bench.device
        ours = Stand(OURS, partial(Ours, case, self._prepared, device), self._bench)
        ours.turn()
        ours.leave()
        for rival in self._rivals:
            rival.turn()
        chosen = engine_would(case, self._prepared, device)
        entries = (ours.entry(), *(rival.entry() for rival in self._rivals))
        return CaseResult(case, self._bench.session, chosen, entries)


class Stand:
    """One contestant: set up once, then measured turn by turn, until it breaks."""

    def __init__(self, name: str, make: Callable[[], Contestant], bench: Bench) -> None:
        self._name, self._bench = name, bench
        self._contestant: Contestant | None = None
        self._setup: float | None = None
        self._memory: int | None = None
        self._reason = ""
        self._speeds: list[Speed] = []
        self._guarded(partial(self._set_up, make))

    def turn(self) -> None:
        """Whole epochs, for as long as the bench says."""
        self._guarded(self._measure)

    def entry(self) -> Entry:
        """The last turns: of a rival those around ours."""
        status = "failed" if self._reason else "ok"
        speeds = tuple(self._speeds[-2:])
        return Entry(self._name, status, self._reason, speeds, self._setup, self._memory)

    def leave(self) -> None:
        """Give back what it holds, so that nobody else runs out of memory."""
        self._contestant = None
        if self._bench.device.type == "cuda":
            torch.compiler.reset()  # what was compiled for it holds on to its tensors
        release(self._bench.device)

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._reason:
            return
        try:
            action()
        except Exception as error:
            self._reason = explain(error)
        if self._reason:
            self.leave()  # only now: until it is dealt with, the error itself holds on to tensors

    def _set_up(self, make: Callable[[], Contestant]) -> None:
        device = self._bench.device
        release(device)
        before = _start_counting(device)
        begun = time.perf_counter()
        self._contestant = make()
        self._contestant.epoch()
        wait_for(device)
        self._setup = time.perf_counter() - begun
        if before is not None:
            self._memory = torch.cuda.max_memory_reserved(device) - before

    def _measure(self) -> None:
        assert self._contestant is not None
        count, seconds = whole(self._contestant.epoch, self._bench.seconds, self._bench.device)
        self._speeds.append(Speed(count * self._contestant.images, seconds))


def _start_counting(device: torch.device) -> int | None:
    """Bytes that a GPU has set aside so far. What recorded steps keep for themselves counts only among these."""
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_reserved(device)
