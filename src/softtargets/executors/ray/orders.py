"""What the head and its workers tell each other. Plain data: both may be of different machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softtargets import exceptions
from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.recipes import Recipe

# Of a run: what happened, its id, and what belongs to it.
Event = tuple[str, str, Any]


@dataclass(frozen=True)
class Place:
    """What a worker trains with, the same for all its orders.

    store:    the directory of runs, for workers that see it.
    data_dir: that of the call; `data_hint` is where the head has its data, for workers that know no better.
    beside:   how many workers share the device.
    """

    store: Path
    device: str
    threads: int
    data_dir: Path | None = None
    data_hint: Path | None = None
    beside: int = 1


@dataclass(frozen=True)
class Order:
    """Runs to train, whose teachers are there.

    seconds: until the time is up, counted from when the order arrives: the clocks of two machines differ.
    afresh:  ids of light runs that are trained once more.
    """

    recipes: tuple[Recipe, ...]
    keep: Mapping[str, tuple[str, ...]]
    checkpoint_seconds: float
    seconds: float | None = None
    afresh: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the runs."""
        return tuple(recipe.id for recipe in self.recipes)


@dataclass(frozen=True)
class Probe:
    """A file with a token and a lock that the head holds, in its directory of runs: does a worker see both?"""

    token_file: Path
    token: str
    lock_file: Path


@dataclass(frozen=True)
class Hello:
    """Who a worker is, and whether it shares the head's directory of runs, locks included."""

    node: str
    process: int
    versions: dict[str, str]
    shares: bool


@dataclass(frozen=True)
class Inspected:
    """What a worker that has the data says of recipes: units of work, and how many of a kind train together."""

    units: dict[str, int]
    together: dict[str, int]


@dataclass(frozen=True)
class Refusal:
    """An error of a worker, as the head raises it."""

    kind: str
    message: str
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException, trace: str = "") -> Refusal:
        """What is told of an exception: of those meant for people their sentence, of others also where they were."""
        meant = isinstance(error, SofttargetsError)
        kind = type(error).__name__
        return cls(kind, str(error), "" if meant else trace)

    def exception(self, node: str = "") -> Exception:
        """The same on this side; `node` is named where it matters.

        >>> Refusal.of(exceptions.DataError("no such file")).exception("gpu7")
        DataError('on gpu7: no such file')
        """
        made = getattr(exceptions, self.kind, None)
        said = f"on {node}: {self.message}" if node else self.message
        if isinstance(made, type) and issubclass(made, SofttargetsError) and made is not Unfinished:
            return made(said)
        return WorkerBugError(f"{self.kind}: {said}", self.trace)


class WorkerBugError(Exception):
    """A worker failed in a way that is no message for people: a bug. `trace` says where."""

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.trace = trace

    def __str__(self) -> str:
        return f"{self.args[0]}\n{self.trace}".rstrip()


@dataclass(frozen=True)
class News:
    """What has happened on a worker since it was asked last; `packs` are runs that travel, by id."""

    events: list[Event] = field(default_factory=list)
    packs: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What an order has come to: ids of runs that have not ended, why, where that is an error, and the last news."""

    left: tuple[str, ...]
    refusal: Refusal | None
    news: News
