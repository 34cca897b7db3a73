"""The cases of translation, and what is measured on them. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from benchmarks.results import CaseEntry, CaseResult, Timing
from benchmarks.translation.sizes import ASKED_DECODING, ASKED_STEP, SIZES

OURS, EAGER, COMPILED = "ours", "eager", "compiled"
SMOOTHING, LABO = "label smoothing", "labo"
HUGGING_FACE = "hugging face"


@dataclass(frozen=True)
class TrainingCase:
    """So many runs of one model on streams of their own; batches hold so many tokens on either side."""

    size: str
    tokens: int
    precision: str
    data: str
    runs: int

    @property
    def setting(self) -> tuple[str, int, str, str]:
        """What the rivals depend on too."""
        return self.size, self.tokens, self.precision, self.data

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"{self.size}, {runs}, batches of {self.tokens} tokens {self.precision}, {self.data}"


@dataclass(frozen=True)
class Speed:
    """So many target tokens, padding left out, in so many seconds.

    >>> Speed(tokens=1000, seconds=0.5).rate
    2000.0
    """

    tokens: int
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True)
class TrainingEntry(CaseEntry):
    """What one contestant did: the speeds of its turns, all runs together, of a rival those before and after ours.

    `setup` is the seconds before: making models, compiling, recording and one epoch. `memory` is what the GPU has set
    aside for it, in bytes. Both are, of ours, for the runs that smaller packs did not have.
    """

    speeds: tuple[Speed, ...] = ()
    setup: float | None = None
    memory: int | None = None

    @property
    def rate(self) -> float | None:
        """Tokens per second, the mean over the turns; None for who failed."""
        return fmean(speed.rate for speed in self.speeds) if self.speeds and self.status == "ok" else None

    @property
    def spread(self) -> float | None:
        """How far apart the turns were, relative to the slowest."""
        rates = [speed.rate for speed in self.speeds]
        return max(rates) / min(rates) - 1 if len(rates) > 1 and min(rates) > 0 else None


@dataclass(frozen=True, kw_only=True)
class TrainingResult(CaseResult[TrainingEntry]):
    """One case, and the share of target positions in batches that is padding."""

    case: TrainingCase
    entries: tuple[TrainingEntry, ...]
    padding: float = 0.0

    def rate(self, name: str = OURS) -> float | None:
        """Tokens per second of one contestant, if it was measured."""
        entry = self.entry(name)
        return None if entry is None else entry.rate

    def ratio(self, rival: str = EAGER) -> float | None:
        """Our tokens per second over the rival's, of the turns around ours."""
        ours, theirs = self.rate(), self.rate(rival)
        return ours / theirs if ours and theirs else None

    @property
    def asked(self) -> float | None:
        """How many times the eager loop's speed this must be, if anything is asked."""
        size = SIZES.get(self.case.size)
        return None if size is None else size.asked if self.case.runs == 1 else size.asked_packed


@dataclass(frozen=True)
class StepCase:
    """One run with label smoothing and one with LABO, an epoch each in turns."""

    size: str
    tokens: int
    precision: str
    data: str

    def __str__(self) -> str:
        return f"LABO's step, {self.size}, batches of {self.tokens} tokens {self.precision}, {self.data}"


@dataclass(frozen=True)
class TimedEntry(CaseEntry):
    """How long a step takes, or all sentences."""

    time: Timing | None = None


@dataclass(frozen=True, kw_only=True)
class StepResult(CaseResult[TimedEntry]):
    """Seconds of a step."""

    SECTION: ClassVar[str] = "steps"

    case: StepCase
    entries: tuple[TimedEntry, ...]

    @property
    def ratio(self) -> float | None:
        """LABO's step over that of label smoothing."""
        labo, smoothing = (_median(self.entry(name)) for name in (LABO, SMOOTHING))
        return labo / smoothing if labo and smoothing else None

    asked: ClassVar[float] = ASKED_STEP


@dataclass(frozen=True)
class DecodingCase:
    """Beam search for the sentences of a test set, always so many tokens each."""

    size: str
    beam: int
    length: int
    sentences: int
    precision: str
    data: str

    def __str__(self) -> str:
        return (
            f"decoding, {self.size}, beam {self.beam}, {self.sentences} sentences to {self.length} tokens "
            f"{self.precision}, {self.data}"
        )


@dataclass(frozen=True, kw_only=True)
class DecodingResult(CaseResult[TimedEntry]):
    """Seconds for all sentences, from lists of tokens to lists of tokens."""

    SECTION: ClassVar[str] = "decoding"

    case: DecodingCase
    entries: tuple[TimedEntry, ...]

    def rate(self, name: str = OURS) -> float | None:
        """Sentences per second."""
        seconds = _median(self.entry(name))
        return self.case.sentences / seconds if seconds else None

    @property
    def rival(self) -> str | None:
        """The fastest that is not ours: Hugging Face is given batches of several sizes."""
        measured = [entry.name for entry in self.entries if entry.name != OURS and self.rate(entry.name)]
        return max(measured, key=lambda name: self.rate(name) or 0.0, default=None)

    @property
    def ratio(self) -> float | None:
        """Our sentences per second over those of the fastest rival."""
        ours, theirs = self.rate(), self.rate(self.rival) if self.rival else None
        return ours / theirs if ours and theirs else None

    asked: ClassVar[float] = ASKED_DECODING


def _median(entry: TimedEntry | None) -> float | None:
    return None if entry is None or entry.time is None else entry.time.median
