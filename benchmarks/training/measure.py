"""How trainings are measured: ours and its rivals train in turns on the same images."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.bench import BenchGrid, Contestant
from benchmarks.clocks import WallClock, whole
from benchmarks.failures import explain, release
from benchmarks.results import CaseResult
from benchmarks.training.accuracy import check_data, compare_accuracy
from benchmarks.training.contestants import eager, engine_would, ours, prepared_for
from benchmarks.training.grid import TEST_IMAGES_PER_BATCH
from benchmarks.training.images import Images
from benchmarks.training.nets import CLASSES, TRAINED
from benchmarks.training.results import OURS, AccuracyCase, Speed, TrainingCase, TrainingEntry, TrainingResult


def measurer(grid: BenchGrid, device: torch.device, session: int) -> Callable[[Any], CaseResult[Any]]:
    """What measures one case after the other; those of one net, which follow each other, share their rivals."""
    going: dict[tuple[str, int, int], NetRound] = {}
    for case in grid.cases:
        if isinstance(case, AccuracyCase):
            check_data(case, grid.data_dir)

    def measure(case: Any) -> CaseResult[Any]:
        if isinstance(case, AccuracyCase):
            return compare_accuracy(case, session, device, grid.data_dir)
        if case.setting not in going:
            going.clear()
            going[case.setting] = NetRound(
                case.setting, grid.names(case)[1:], WallClock(device), grid.seconds
            )
        return going[case.setting].measure(case, session)

    return measure


class NetRound:
    """The cases of one net: rivals are set up once and take a turn before the first case and after each."""

    def __init__(
        self, setting: tuple[str, int, int], rivals: Sequence[str], clock: WallClock, seconds: float
    ) -> None:
        net, batch, batches = setting
        trained = TRAINED[net]
        self._stand = partial(Stand, clock=clock, seconds=seconds)
        self._device = clock.device
        images = Images.random(
            trained.shape, batch * batches, TEST_IMAGES_PER_BATCH * batches, CLASSES, clock.device
        )
        self._prepared = prepared_for(trained.recipe, images)
        self._rivals = [self._stand(name, partial(eager, name, net, batch, images)) for name in rivals]
        for rival in self._rivals:
            rival.turn()

    def measure(self, case: TrainingCase, session: int) -> TrainingResult:
        """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
        we = self._stand(OURS, partial(ours, case, self._prepared, self._device))
        we.turn()
        we.leave()
        for rival in self._rivals:
            rival.turn()
        chosen = engine_would(case, self._prepared, self._device)
        entries = tuple(stand.entry() for stand in (we, *self._rivals))
        return TrainingResult(case=case, session=session, entries=entries, chosen=chosen)


class Stand:
    """One contestant: set up once, then measured turn by turn, until it breaks."""

    def __init__(self, name: str, make: Callable[[], Contestant], clock: WallClock, seconds: float) -> None:
        self._name, self._clock, self._seconds = name, clock, seconds
        self._contestant: Contestant | None = None
        self._setup: float | None = None
        self._memory: int | None = None
        self._reason = ""
        self._speeds: list[Speed] = []
        self._guarded(partial(self._set_up, make))

    def turn(self) -> None:
        """Whole epochs, for as long as the bench says."""
        self._guarded(self._measure)

    def entry(self) -> TrainingEntry:
        """The last turns: of a rival those around ours."""
        status = "failed" if self._reason else "ok"
        speeds = tuple(self._speeds[-2:])
        return TrainingEntry(self._name, status, self._reason, speeds, self._setup, self._memory)

    def leave(self) -> None:
        """Give back what it holds, so that nobody else runs out of memory."""
        self._contestant = None
        if self._clock.device.type == "cuda":
            torch.compiler.reset()  # what was compiled for it holds on to its tensors
        release(self._clock.device)

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
        device = self._clock.device
        release(device)
        before = _start_counting(device)
        begun = time.perf_counter()
        self._contestant = make()
        self._contestant.call()
        self._clock.finish()
        self._setup = time.perf_counter() - begun
        if before is not None:
            self._memory = torch.cuda.max_memory_reserved(device) - before

    def _measure(self) -> None:
        assert self._contestant is not None
        count, seconds = whole(self._contestant.call, self._seconds, self._clock)
        self._speeds.append(Speed(count * self._contestant.images, seconds))


def _start_counting(device: torch.device) -> int | None:
    """Bytes that a GPU has set aside so far. What recorded steps keep for themselves counts only among these."""
    if device.type != "cuda":
        return None
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_reserved(device)
