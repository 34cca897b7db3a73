"""From when on a single head is busy: arithmetic with what was measured. No torch here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.results import BenchResults
from benchmarks.scale.results import ClaimResult, StoreResult

WORKERS = (1, 8, 64, 512)
BUSY = 0.1  # of its time


@dataclass(frozen=True)
class HeadLoad:
    """What one finished run costs whoever all of them go through: `seconds` of one core, or of one disk.

    Of a core they are processor time: while a head waits for its disk, it can take in the next.
    """

    what: str
    seconds: float

    @property
    def per_second(self) -> float:
        """Runs that it can take, if it does nothing else."""
        return 1 / self.seconds

    def shortest(self, workers: int, busy: float = BUSY) -> float:
        """The length of runs, in seconds, at which so many workers, one run at a time each, keep it busy so much.

        They finish workers / length runs a second, each of which costs `seconds`.

        >>> HeadLoad("merge", 0.003).shortest(64)
        1.92
        """
        return round(workers * self.seconds / busy, 6)


def loads(results: BenchResults) -> list[HeadLoad]:
    """The ways that finished runs take: through the head, one or many in a file, or onto the disk by themselves."""
    found = []
    stores = [item for item in results.of(StoreResult) if item.case.runs >= 1000]
    for name, what in (
        ("carry 1", "through the head, one run in a file"),
        ("carry 32", "through the head, 32 runs in a file"),
    ):
        costs = [busy for item in stores if (busy := item.busy(name)) is not None]
        found += [HeadLoad(what, max(costs))] if costs else []
    fastest = max(_rates(results.of(ClaimResult), "finishes"), default=None)
    if fastest is not None:
        found.append(HeadLoad("each worker writes to one shared disk", 1 / fastest))
    return found


def _rates(items: Iterable[ClaimResult], name: str) -> list[float]:
    entries = (item.entry(name) for item in items)
    return [entry.per_second for entry in entries if entry is not None and entry.per_second]
