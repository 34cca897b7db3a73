"""The cases of calibration, and what is measured on them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.results import BenchResults, CaseEntry, CaseResult, Timing

OURS = "ours"
INTERVALS = "ours with intervals"
STREAMED = "ours streamed"
ALL_OURS = (OURS, INTERVALS, STREAMED)
# How far from float64 an ECE may be. Single precision in, sums in double precision: rounding moves ours by much less.
# torchmetrics adds up confidences in single precision, which shows with a million of them and is nobody's mistake.
OURS_WITHIN, OTHERS_WITHIN = 1e-6, 2e-3


@dataclass(frozen=True)
class CalibrationCase:
    """So many examples of so many classes, float32 logits, on one kind of device."""

    device: str
    examples: int
    classes: int

    @property
    def size(self) -> str:
        """Examples and classes as a person writes them."""
        return f"{self.examples:,} x {self.classes:,}"

    def __str__(self) -> str:
        return f"{self.device}, {self.size}"


@dataclass(frozen=True)
class Memory:
    """The most bytes held beyond the logits and labels, for so many examples."""

    examples: int
    peak: int


@dataclass(frozen=True)
class CalibrationEntry(CaseEntry):
    """What one contestant did in one case.

    `time` is from logits to the metrics on the host. `ece` is what it found, `error` how far that is from float64.
    """

    time: Timing | None = None
    ece: float | None = None
    error: float | None = None
    memory: tuple[Memory, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CalibrationResult(CaseResult[CalibrationEntry]):
    """One case: the ECE in float64, by how much rounding may move it, and what every contestant did."""

    case: CalibrationCase
    entries: tuple[CalibrationEntry, ...]
    threads: int
    reference: float
    rounding: float

    def seconds(self, name: str = OURS) -> float | None:
        """The median time of one contestant, if it was measured."""
        entry = self.entry(name)
        return None if entry is None or entry.time is None else entry.time.median

    def rate(self, name: str = OURS) -> float | None:
        """Examples per second of one contestant."""
        seconds = self.seconds(name)
        return self.case.examples / seconds if seconds else None

    def ratio(self, rival: str, ours: str = OURS) -> float | None:
        """The rival's time over ours: above 1 if ours is faster."""
        mine, theirs = self.seconds(ours), self.seconds(rival)
        return theirs / mine if mine and theirs else None


def gain(results: BenchResults, item: CalibrationResult, name: str) -> float | None:
    """Examples per second of a contestant on a GPU over those of the same on the CPU, in the same session."""
    if item.case.device == "cpu":
        return None
    for other in results.of(CalibrationResult):
        same = other.session == item.session and other.case.classes == item.case.classes
        if same and other.case.device == "cpu":
            fast, slow = item.rate(name), other.rate(name)
            return fast / slow if fast and slow else None
    return None
