"""The cases of trainings, and what is measured on them. No torch here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import ClassVar

from benchmarks.results import CaseEntry, CaseResult

OURS = "ours"
EAGER = "eager"

# Accuracies are called the same up to two standard errors of their difference, plus so much that nobody would mind.
ERRORS = 2.0
MARGIN = 0.002


@dataclass(frozen=True)
class TrainingCase:
    """So many runs of one net, trained together in one arrangement; an epoch is so many batches."""

    net: str
    batch: int
    batches: int
    precision: str
    arrangement: str
    runs: int

    @property
    def setting(self) -> tuple[str, int, int]:
        """What the eager loop depends on too."""
        return self.net, self.batch, self.batches

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"{self.net}, {runs} {self.arrangement}, batch {self.batch} {self.precision}"


@dataclass(frozen=True)
class Speed:
    """So many images in so many seconds.

    >>> Speed(images=1000, seconds=0.5).rate
    2000.0
    """

    images: int
    seconds: float

    @property
    def rate(self) -> float:
        """Images per second."""
        return self.images / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class TrainingEntry(CaseEntry):
    """What one contestant did in one case.

    `speeds` are those of its turns, all runs together: one turn of ours, and of a rival the turns before and after it.
    `setup` is the seconds before: making nets, compiling, recording and one epoch. `memory` is the most that the GPU
    set aside for it, in bytes.
    """

    speeds: tuple[Speed, ...] = ()
    setup: float | None = None
    memory: int | None = None

    @property
    def rate(self) -> float | None:
        """Images per second, the mean over the turns; None for who failed."""
        return fmean(speed.rate for speed in self.speeds) if self.speeds and self.status == "ok" else None

    @property
    def spread(self) -> float | None:
        """How far apart the turns were, relative to the slowest."""
        rates = [speed.rate for speed in self.speeds]
        return max(rates) / min(rates) - 1 if len(rates) > 1 and min(rates) > 0 else None


@dataclass(frozen=True, kw_only=True)
class TrainingResult(CaseResult[TrainingEntry]):
    """One case. `chosen`: so the engine itself would arrange so many runs of this net."""

    case: TrainingCase
    entries: tuple[TrainingEntry, ...]
    chosen: bool

    def rate(self, name: str = OURS) -> float | None:
        """Images per second of one contestant, if it was measured."""
        entry = self.entry(name)
        return None if entry is None else entry.rate

    def ratio(self, rival: str = EAGER) -> float | None:
        """Our images per second over the rival's, of the turns around ours."""
        ours, theirs = self.rate(), self.rate(rival)
        return ours / theirs if ours and theirs else None


@dataclass(frozen=True)
class AccuracyCase:
    """One training on real data, by us and by the eager loop, with so many seeds each."""

    data: str
    epochs: int
    precision: str
    seeds: int

    def __str__(self) -> str:
        epochs = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return f"accuracy on {self.data}, {epochs} {self.precision}, {self.seeds} seeds"


@dataclass(frozen=True, kw_only=True)
class AccuracyResult(CaseResult[CaseEntry]):
    """The test accuracy at the end of each training, one per seed."""

    SECTION: ClassVar[str] = "accuracy"

    case: AccuracyCase
    ours: tuple[float, ...] = ()
    eager: tuple[float, ...] = ()
    status: str = "ok"
    reason: str = ""

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """Both sides are one comparison."""
        return iter([] if self.status == "ok" else [("the comparison", self.status, self.reason)])

    @property
    def difference(self) -> float:
        """Our mean less theirs; NaN where a side is missing."""
        return fmean(self.ours) - fmean(self.eager) if self.ours and self.eager else math.nan

    @property
    def error(self) -> float:
        """The standard error of the difference; seeds of one side have nothing to do with those of the other."""
        if min(len(self.ours), len(self.eager)) < 2:
            return math.nan
        return math.sqrt(sum(stdev(side) ** 2 / len(side) for side in (self.ours, self.eager)))

    @property
    def allowed(self) -> float:
        """How large a difference is called noise."""
        return ERRORS * self.error + MARGIN

    @property
    def agrees(self) -> bool | None:
        """Whether the difference is noise; None if nobody can tell."""
        allowed = self.allowed
        return None if math.isnan(allowed) else abs(self.difference) <= allowed
