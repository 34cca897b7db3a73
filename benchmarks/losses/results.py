"""The cases of losses, and what is measured on them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from benchmarks.results import CaseEntry, CaseResult, Timing

OURS, IN_PLACE = "ours", "ours in place"
# Where moving the data takes less than this, launching kernels is what takes the time.
LAUNCH_BOUND = 5e-6


@dataclass(frozen=True)
class LossCase:
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
class LossEntry(CaseEntry):
    """What one contestant did in one case.

    `time` is forward + backward on the device; `again` the same for a second, interleaved series of ours.
    `call` is seconds per call when calls follow each other without waiting: what a loop pays when launching
    kernels takes longer than running them. `memory` is the peak beyond what was there before, in bytes, the
    gradient included; `lean` (linear section) is the same less the gradients, which are there at the end in any case.
    Errors are against float64: of the loss relative to it, of the gradient relative to the largest of its row.
    """

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

    def seconds(self, by_call: bool = False) -> float | None:
        """The time that counts: on the device, or per call where launches dominate."""
        if by_call:
            return self.call
        return None if self.time is None else self.time.median

    def over(self, floor: float) -> float | None:
        """The time on the device in multiples of a floor."""
        return self.time.median / floor if self.time is not None and floor > 0 else None


@dataclass(frozen=True, kw_only=True)
class LossResult(CaseResult[LossEntry]):
    """One case: its floor, and what every contestant did.

    `floor` is the time to read the logits once and write their gradient once (and to read what else the loss
    needs, such as a teacher's logits) at `copy_rate`, bytes per second, measured in the same session.
    """

    case: LossCase
    entries: tuple[LossEntry, ...]
    copy_rate: float
    floor: float
    logits_bytes: int

    @property
    def by_call(self) -> bool:
        """Whether the time per call, not the time on the device, is what a user waits for."""
        return self.floor < LAUNCH_BOUND

    def advantage(self) -> float | None:
        """The fastest rival's time over ours; rivals whose numbers differ do not count."""
        ours = self.entry(OURS)
        mine = None if ours is None else ours.seconds(self.by_call)
        rivals = (entry for entry in self.entries if not entry.name.startswith(OURS) and entry.status == "ok")
        others = [seconds for entry in rivals if (seconds := entry.seconds(self.by_call)) is not None]
        return min(others) / mine if mine and others else None


@dataclass(frozen=True, kw_only=True)
class LinearResult(CaseResult[LossEntry]):
    """One case of the linear section; `floor` is three times the plain matrix product, measured beside it."""

    SECTION: ClassVar[str] = "linear"

    case: LinearCase
    entries: tuple[LossEntry, ...]
    floor: float
    logits_bytes: int
    by_call: ClassVar[bool] = False
