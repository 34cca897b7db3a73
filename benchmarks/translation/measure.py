"""How translation is measured: ours and its rivals take turns on the same sentences."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from benchmarks.bench import BenchGrid
from benchmarks.clocks import Timed, WallClock, interleave, summarise
from benchmarks.failures import explain, release, verdict
from benchmarks.results import CaseResult, Timing
from benchmarks.translation.contestants import OurRuns, check_lengths, eager, hugging_face, our_decoding
from benchmarks.translation.results import (
    LABO,
    OURS,
    SMOOTHING,
    DecodingCase,
    DecodingResult,
    Speed,
    StepCase,
    StepResult,
    TimedEntry,
    TrainingCase,
    TrainingEntry,
    TrainingResult,
)
from benchmarks.translation.sentences import Text, read_text
from benchmarks.translation.sizes import recipe
from softtargets.recipes import LABO as LABOPart
from softtargets.training.machinery import Machinery

# Of epochs in turns: the fewest that a ratio of medians is taken of.
FEWEST_EPOCHS = 5


def measurer(grid: BenchGrid, device: torch.device, session: int) -> Callable[[Any], CaseResult[Any]]:
    """What measures one case after the other; those of one size, which follow each other, share models and rivals."""
    texts = {case.data: read_text(case.data, device, grid.data_dir) for case in grid.cases}
    going: dict[tuple[Any, ...], SizeRound] = {}
    clock = WallClock(device)

    def measure(case: Any) -> CaseResult[Any]:
        text = texts[case.data]
        if isinstance(case, DecodingCase):
            going.clear()
            _forget(device)
            return decoding(case, text, clock, grid.names(case), grid.repeats, session)
        setting = (case.size, case.tokens, case.precision, case.data)
        if setting not in going:
            going.clear()
            _forget(device)
            going[setting] = SizeRound(case, text, grid.contestants[TrainingCase][1:], clock, grid.seconds)
        if isinstance(case, StepCase):
            return going[setting].steps(case, session)
        return going[setting].measure(case, session)

    return measure


class SizeRound:
    """The cases of one size: rivals are set up once and take a turn before the first pack and after each."""

    def __init__(
        self,
        case: TrainingCase | StepCase,
        text: Text,
        rivals: tuple[str, ...],
        clock: WallClock,
        seconds: float,
    ) -> None:
        how = case.size, case.tokens, case.precision
        self._text, self._clock, self._seconds = text, clock, seconds
        # Runs that differ in nothing but seeds and losses share what is compiled.
        machinery = Machinery(recipe(*how), text.task, clock.device, stacked=False)
        self._ours = OurRuns(partial(recipe, *how), text, machinery)
        self._labo = OurRuns(partial(recipe, *how, regulariser=LABOPart()), text, machinery)
        self._rivals = {
            name: Stand(name, partial(eager, name, recipe(*how), text, clock.device), clock, seconds)
            for name in (rivals if isinstance(case, TrainingCase) else ())
        }
        for rival in self._rivals.values():
            rival.turn()

    def measure(self, case: TrainingCase, session: int) -> TrainingResult:
        """One pack. Whatever breaks is written down with its reason; nobody is dropped."""
        we = Stand(OURS, partial(self._ours.pack, case.runs), self._clock, self._seconds)
        we.turn()
        for rival in self._rivals.values():
            rival.turn()
        entries = tuple(stand.entry() for stand in (we, *self._rivals.values()))
        padding = self._text.task.splits["train"].padding
        return TrainingResult(case=case, session=session, entries=entries, padding=padding)

    def steps(self, case: StepCase, session: int) -> StepResult:
        """One run with each loss, an epoch at a time in turns."""
        broken: dict[str, str] = {}
        everybody = {}
        for name, runs in ((SMOOTHING, self._ours), (LABO, self._labo)):
            try:
                everybody[name] = Timed(runs.pack(1))
            except Exception as error:
                broken[name] = explain(error)
        found, failed = interleave(self._clock, everybody, self._seconds, fewest=FEWEST_EPOCHS)
        broken |= failed
        entries = tuple(
            TimedEntry(name, "failed", broken[name])
            if name in broken
            else TimedEntry(name, time=_each(found[name], self._ours.steps))
            for name in (SMOOTHING, LABO)
        )
        return StepResult(case=case, session=session, entries=entries)


class Stand:
    """One contestant: set up once, then measured turn by turn, until it breaks."""

    def __init__(
        self, name: str, make: Callable[[], Callable[[], int]], clock: WallClock, seconds: float
    ) -> None:
        self._name, self._clock, self._seconds = name, clock, seconds
        self._epoch: Callable[[], int] = lambda: 0
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
        return TrainingEntry(
            self._name, status, self._reason, tuple(self._speeds[-2:]), self._setup, self._memory
        )

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._reason:
            return
        try:
            action()
        except Exception as error:
            self._reason = explain(error)
        if self._reason:
            release(self._clock.device)

    def _set_up(self, make: Callable[[], Callable[[], int]]) -> None:
        device = self._clock.device
        before = torch.cuda.memory_reserved(device) if device.type == "cuda" else 0
        begun = time.perf_counter()
        self._epoch = make()
        self._epoch()
        self._clock.finish()
        self._setup = time.perf_counter() - begun
        if device.type == "cuda":
            self._memory = torch.cuda.memory_reserved(device) - before

    def _measure(self) -> None:
        self._clock.finish()
        begun, tokens = self._clock.now(), 0
        while tokens == 0 or self._clock.now() - begun < self._seconds:
            tokens += self._epoch()
        self._clock.finish()
        self._speeds.append(Speed(tokens, self._clock.now() - begun))


def decoding(
    case: DecodingCase, text: Text, clock: WallClock, names: tuple[str, ...], repeats: int, session: int
) -> DecodingResult:
    """Everybody translates all sentences in turns; the first time is not counted."""
    searches: dict[str, Callable[[], list[list[int]]]] = {}
    entries = {name: TimedEntry(name) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}

    def attempt(name: str, action: Callable[[], None]) -> None:
        if entries[name].status == "ok":
            try:
                action()
            except Exception as error:
                entries[name] = TimedEntry(name, *verdict(error))
                release(clock.device)

    def begin(name: str) -> None:
        if name == OURS:
            searches[name] = our_decoding(case, text, clock.device)
        else:
            searches[name] = hugging_face(case, int(name.split()[-1]), text, clock.device)
        check_lengths(searches[name](), case)

    for name in names:
        attempt(name, partial(begin, name))
    for _ in range(repeats):
        for name in names:
            attempt(name, lambda name=name: samples[name].append(clock.sample(Timed(searches[name]))))  # type: ignore[misc]
    done = tuple(
        TimedEntry(name, time=summarise(samples[name])) if entry.status == "ok" else entry
        for name, entry in entries.items()
    )
    return DecodingResult(case=case, session=session, entries=done)


def _each(epoch: Timing, steps: int) -> Timing:
    return Timing(epoch.median / steps, epoch.low / steps, epoch.high / steps, epoch.repetitions)


def _forget(device: torch.device) -> None:
    """What was compiled for a size holds on to its tensors."""
    if device.type == "cuda":
        torch.compiler.reset()
    release(device)
