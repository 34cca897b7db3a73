"""The cases of the scale bench, and what is measured on them. No torch here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.results import CaseEntry, CaseResult, Timing

# What is done for one run of a store, or for one pack: the same however many there are, if all is well.
EACH = ("write", "find", "claim", "delete", "carry 1", "carry 32", "take")
# What is done with all runs of a store: in proportion to their number, if all is well.
WHOLE = (
    *("entries cold", "entries", "entries again", "list", "verify", "plan"),
    *("outlook", "look again", "pack", "merge", "page", "atlas"),
)
OPERATIONS = (*EACH, *WHOLE)
COMPETITIONS = ("claims", "finishes")


@dataclass(frozen=True)
class StoreCase:
    """A store of so many finished runs."""

    runs: int

    def __str__(self) -> str:
        return f"{self.runs:,} runs"


@dataclass(frozen=True)
class StoreEntry(CaseEntry):
    """One operation on a store: seconds for all of it, how many things were done in them, and bytes beyond the start.

    `busy` are seconds of processors, in the turn that took the fewest: other work on the machine changes them little,
    where seconds on the wall are also spent waiting for a disk that others use.
    """

    time: Timing | None = None
    count: int = 1
    peak: int | None = None
    busy: float | None = None

    @property
    def each(self) -> float | None:
        """Seconds for one, in the fastest turn: other work on the machine only ever adds."""
        return None if self.time is None else self.time.low / self.count


@dataclass(frozen=True, kw_only=True)
class StoreResult(CaseResult[StoreEntry]):
    """A store: bytes and inodes it takes on disk, seconds that writing it took, and what was done with it."""

    SECTION: ClassVar[str] = "stores"

    case: StoreCase
    entries: tuple[StoreEntry, ...]
    bytes: int
    inodes: int
    index_bytes: int

    def seconds(self, name: str) -> float | None:
        """Of an operation: for one thing if that is how it is told, else for the whole."""
        entry = self.entry(name)
        if entry is None or entry.time is None:
            return None
        return entry.each if name in EACH else entry.time.low

    def busy(self, name: str) -> float | None:
        """The same in seconds of processors."""
        entry = self.entry(name)
        if entry is None or not entry.busy:
            return None
        return entry.busy / (entry.count if name in EACH else 1)


@dataclass(frozen=True)
class ClaimCase:
    """So many processes on one store, after the same runs."""

    processes: int
    runs: int

    def __str__(self) -> str:
        return f"{self.processes} process{'es' * (self.processes > 1)}, {self.runs:,} runs"


@dataclass(frozen=True)
class ClaimEntry(CaseEntry):
    """What they did together, in how many seconds; `refused` are claims that another process held."""

    seconds: float | None = None
    done: int = 0
    refused: int = 0

    @property
    def per_second(self) -> float | None:
        """Of all processes together."""
        return None if not self.seconds else self.done / self.seconds


@dataclass(frozen=True, kw_only=True)
class ClaimResult(CaseResult[ClaimEntry]):
    """Processes that compete."""

    SECTION: ClassVar[str] = "claims"

    case: ClaimCase
    entries: tuple[ClaimEntry, ...]


def exponent(few: tuple[int, float], many: tuple[int, float]) -> float:
    """How a cost grows between two sizes: 0 not at all, 1 in proportion, 2 as the square.

    >>> exponent((10, 0.5), (1000, 50.0))
    1.0
    """
    return math.log(many[1] / few[1]) / math.log(many[0] / few[0])
