"""What was measured, as plain data that goes to JSON and comes back the same. No torch here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from softtargets.bench.files import Stored
from softtargets.bench.measurement import Timing

# ok: measured. disagrees: measured, but its numbers are not ours. absent: there is no such thing here.
# failed: it ought to have worked. `reason` says why.
STATUSES = ("ok", "disagrees", "absent", "failed")


@dataclass(frozen=True)
class Case:
    """One loss at one size in one precision."""

    loss: str
    rows: int
    classes: int
    dtype: str

    @property
    def size(self) -> str:
        """Rows and classes as a person writes them."""
        return f"{self.rows} x {self.classes}"

    def __str__(self) -> str:
        return f"{self.loss} {self.size} {self.dtype}"


@dataclass(frozen=True)
class LinearCase:
    """One loss after a projection from hidden states to classes."""

    loss: str
    rows: int
    hidden: int
    classes: int
    dtype: str

    @property
    def size(self) -> str:
        """Rows, hidden width and classes as a person writes them."""
        return f"{self.rows} x {self.hidden} x {self.classes}"

    def __str__(self) -> str:
        return f"linear + {self.loss} {self.size} {self.dtype}"


@dataclass(frozen=True)
class Entry:
    """What one contestant did in one case; None where it was not measured.

    `time` is forward + backward on the device; `again` the same for a second, interleaved series of ours.
    `call` is seconds per call when calls follow each other without waiting: what a loop pays when launching
    kernels takes longer than running them. `memory` is the peak beyond what was there before, in bytes, the
    gradient included; `lean` (linear section) is the same less the gradients, which are there at the end in any case.
    Errors are against float64: of the loss relative to it, of the gradient relative to the largest of its row.
    """

    name: str
    status: str = "ok"
    reason: str = ""
    time: Timing | None = None
    again: Timing | None = None
    call: float | None = None
    memory: int | None = None
    lean: int | None = None
    loss_error: float | None = None
    gradient_error: float | None = None

    @property
    def spread(self) -> float | None:
        """How far apart two series of the same thing were, relative to the faster one."""
        if self.time is None or self.again is None:
            return None
        pair = (self.time.median, self.again.median)
        return max(pair) / min(pair) - 1 if min(pair) > 0 else None


@dataclass(frozen=True)
class CaseResult:
    """One case: its floor, and what every contestant did.

    `floor` is the time to read the logits once and write their gradient once (and to read what else the loss
    needs, such as a teacher's logits) at `copy_rate`, bytes per second, measured in the same session.
    """

    case: Case
    session: int
    copy_rate: float
    floor: float
    logits_bytes: int
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """What that contestant did, if it was asked for."""
        return next((entry for entry in self.entries if entry.name == name), None)


@dataclass(frozen=True)
class LinearResult:
    """One case of the linear section; `floor` is three times the plain matrix product, measured beside it."""

    case: LinearCase
    session: int
    floor: float
    logits_bytes: int
    entries: tuple[Entry, ...]

    def entry(self, name: str) -> Entry | None:
        """What that contestant did, if it was asked for."""
        return next((entry for entry in self.entries if entry.name == name), None)


@dataclass(frozen=True)
class Results(Stored):
    """Everything in a file: the sessions that measured, and the cases."""

    KIND: ClassVar[str] = "softtargets bench losses"
    FORMAT: ClassVar[int] = 1

    cases: tuple[CaseResult, ...] = ()
    linear: tuple[LinearResult, ...] = ()

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
                LinearResult(
                    **item | {"case": LinearCase(**item["case"]), "entries": _entries(item["entries"])}
                )
                for item in content["linear"]
            ),
        )

    def everything(self) -> list[CaseResult | LinearResult]:
        """Both sections, one after the other."""
        return [*self.cases, *self.linear]

    def names(self) -> list[str]:
        """Every contestant, in the order of appearance."""
        return list(dict.fromkeys(entry.name for item in self.cases for entry in item.entries))


def _entries(items: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    timings = ("time", "again")
    return tuple(
        Entry(**{**item, **{key: Timing(**item[key]) if item.get(key) else None for key in timings}})
        for item in items
    )
