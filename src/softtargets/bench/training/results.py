"""What was measured, as plain data that goes to JSON and comes back the same. No torch here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, ClassVar

from softtargets.bench.files import Stored
from softtargets.bench.measurement import Speed

OURS = "ours"
EAGER = "eager"

# Accuracies are called the same up to two standard errors of their difference, plus so much that nobody would mind.
ERRORS = 2.0
MARGIN = 0.002


@dataclass(frozen=True)
class Case:
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
class Entry:
    """What one contestant did in one case; None where it was not measured.

    `speeds` are those of its turns, all runs together: one turn of ours, and of a rival the turns before and after it.
    `setup` is the seconds before: making nets, compiling, recording and one epoch. `memory` is the most that the GPU
    set aside for it, in bytes.
    """

    name: str
    status: str = "ok"
    reason: str = ""
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


@dataclass(frozen=True)
class CaseResult:
    """One case. `chosen`: so the engine itself would arrange so many runs of this net."""

    case: Case
    session: int
    chosen: bool
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """What that contestant did, if it was asked for."""
        return next((entry for entry in self.entries if entry.name == name), None)

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


@dataclass(frozen=True)
class AccuracyResult:
    """The test accuracy at the end of each training, one per seed."""

    case: AccuracyCase
    session: int
    ours: tuple[float, ...] = ()
    eager: tuple[float, ...] = ()
    status: str = "ok"
    reason: str = ""

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


@dataclass(frozen=True)
class Results(Stored):
    """Everything in a file: the sessions that measured, and the cases."""

    KIND: ClassVar[str] = "softtargets bench training"
    FORMAT: ClassVar[int] = 1

    cases: tuple[CaseResult, ...] = ()
    accuracy: tuple[AccuracyResult, ...] = ()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Results:
        """The inverse of `to_dict`."""
        return cls(
            tuple(content["sessions"]),
            tuple(
                CaseResult(**item | {"case": Case(**item["case"]), "entries": _entries(item["entries"])})
                for item in content["cases"]
            ),
            tuple(
                AccuracyResult(
                    **item
                    | {"case": AccuracyCase(**item["case"])}
                    | {side: tuple(item[side]) for side in (OURS, EAGER)}
                )
                for item in content["accuracy"]
            ),
        )

    def rivals(self) -> list[str]:
        """Everybody but us, in the order of appearance."""
        names = dict.fromkeys(entry.name for item in self.cases for entry in item.entries)
        return [name for name in names if name != OURS]


def _entries(items: list[dict[str, Any]]) -> tuple[Entry, ...]:
    return tuple(
        Entry(**item | {"speeds": tuple(Speed(**speed) for speed in item["speeds"])}) for item in items
    )
