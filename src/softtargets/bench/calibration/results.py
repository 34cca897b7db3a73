"""What was measured, as plain data that goes to JSON and comes back the same. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from softtargets.bench.files import Stored
from softtargets.bench.measurement import Timing

OURS = "ours"
INTERVALS = "ours with intervals"
STREAMED = "ours streamed"
ALL_OURS = (OURS, INTERVALS, STREAMED)


@dataclass(frozen=True)
class Case:
    """So many examples of so many classes, float32 logits, on one kind of device."""

    device: str
    examples: int
    classes: int

    def __str__(self) -> str:
        return f"{self.device}, {self.examples:,} x {self.classes:,}"


@dataclass(frozen=True)
class Memory:
    """The most bytes held beyond the logits and labels, for so many examples."""

    examples: int
    peak: int


@dataclass(frozen=True)
class Entry:
    """What one contestant did in one case; None where it was not measured.

    Status: ok; disagrees (measured, but its ECE is wrong); absent (there is no such thing here); failed (it ought to
    have worked). `reason` says why. `time` is from logits to the metrics on the host. `ece` is what it found, `error`
    how far that is from float64.
    """

    name: str
    status: str = "ok"
    reason: str = ""
    time: Timing | None = None
    ece: float | None = None
    error: float | None = None
    memory: tuple[Memory, ...] = ()


@dataclass(frozen=True)
class CaseResult:
    """One case: the ECE in float64, by how much rounding may move it, and what every contestant did."""

    case: Case
    session: int
    threads: int
    reference: float
    rounding: float
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """What that contestant did, if it was asked for."""
        return next((entry for entry in self.entries if entry.name == name), None)

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


@dataclass(frozen=True)
class Results(Stored):
    """Everything in a file: the sessions that measured, and the cases."""

    KIND: ClassVar[str] = "softtargets bench calibration"
    FORMAT: ClassVar[int] = 1

    cases: tuple[CaseResult, ...] = ()

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Results:
        """The inverse of `to_dict`."""
        return cls(
            tuple(content["sessions"]),
            tuple(
                CaseResult(
                    **item
                    | {
                        "case": Case(**item["case"]),
                        "entries": tuple(_entry(found) for found in item["entries"]),
                    }
                )
                for item in content["cases"]
            ),
        )

    def names(self) -> list[str]:
        """Every contestant, in the order of appearance."""
        return list(dict.fromkeys(entry.name for item in self.cases for entry in item.entries))

    def gain(self, item: CaseResult, name: str) -> float | None:
        """Examples per second of a contestant on a GPU over those of the same on the CPU, in the same session."""
        if item.case.device == "cpu":
            return None
        for other in self.cases:
            same = other.session == item.session and other.case.classes == item.case.classes
            if same and other.case.device == "cpu":
                fast, slow = item.rate(name), other.rate(name)
                return fast / slow if fast and slow else None
        return None

    def disagreements(self) -> list[str]:
        """Whoever computes something else, in words; empty as it should be."""
        return [
            f"{entry.name} on {item.case}: {entry.reason}"
            for item in self.cases
            for entry in item.entries
            if entry.status == "disagrees"
        ]


def _entry(item: Mapping[str, Any]) -> Entry:
    timing = Timing(**item["time"]) if item.get("time") else None
    return Entry(**{**item, "time": timing, "memory": tuple(Memory(**found) for found in item["memory"])})
