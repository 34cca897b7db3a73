"""What a bench is: a grid of cases, contestants that are measured on them, and what is made of the results.

No torch here: what a user misspelt is refused at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from benchmarks.results import BenchResults, CaseResult
from benchmarks.text import Table

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class BenchGrid:
    """Everything one command measures: the cases, who takes part in each kind of case, and how."""

    cases: tuple[Any, ...]
    contestants: Mapping[type, tuple[str, ...]]
    seconds: float = 0.0  # how long a measurement is repeated
    repeats: int = 1  # how often, where that is not a matter of seconds
    threads: int | None = None  # of torch on the CPU; None: its own choice
    batch: int = 1  # examples at a time, where they are streamed
    memory: bool = True  # whether everybody is weighed
    data_dir: Path | None = None
    together: bool = (
        False  # where one case is missing, all are measured again: they are compared with each other
    )

    def names(self, case: Any) -> tuple[str, ...]:
        """Who takes part in a case."""
        return self.contestants.get(type(case), ())


@dataclass(frozen=True)
class Contestant:
    """Somebody who takes part: a name, and what is called; with what, the bench says.

    One that `overwrites` its first argument gets a fresh copy each time, which is not timed. A call of one that trains
    goes through so many `images`.
    """

    name: str
    call: Callable[..., Any]
    overwrites: bool = False
    images: int = 0


class Bench(ABC):
    """One bench. Its docstring is the help of its command; the parameters of `grid` are its options."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[type[CaseResult[Any]], ...]]
    packages: ClassVar[tuple[str, ...]] = ()  # rivals whose versions are noted in a session
    prelude: ClassVar[str] = "starting"  # what happens before the first case
    titles: ClassVar[Mapping[str, str]] = {}  # contestants as a person calls them

    @staticmethod
    @abstractmethod
    def grid(device: str) -> BenchGrid:
        """Read the words of a command line, for a kind of device: ``cuda`` or ``cpu``."""

    def check(self, grid: BenchGrid, cases: Sequence[Any]) -> None:  # noqa: B027
        """Refuse before anything is measured what could not be measured at the end."""

    @abstractmethod
    def measurer(
        self, grid: BenchGrid, device: torch.device, session: int
    ) -> Callable[[Any], CaseResult[Any]]:
        """What measures one case after the other. Whatever breaks is written down; nobody is dropped."""

    @abstractmethod
    def summary(self, item: Any) -> str:
        """One case in one line, for who watches."""

    @abstractmethod
    def tables(self, results: BenchResults) -> Sequence[tuple[str, Table]]:
        """For a terminal: headings, and the tables under them."""

    @abstractmethod
    def texts(self, results: BenchResults) -> dict[str, str]:
        """Files of text by their names."""

    @abstractmethod
    def drawings(self, results: BenchResults) -> dict[str, Figure]:
        """Pictures by their names."""

    def remarks(self, results: BenchResults) -> list[str]:
        """Sentences under the tables: what the numbers come to; who was not measured, and why."""
        from benchmarks.tables import notes

        return notes(results, self.titles)

    def wrong(self, results: BenchResults) -> str:
        """Why a command that measured this must end with an error; empty as it should be."""
        return ""

    def results(self) -> BenchResults:
        """Nothing measured yet."""
        return BenchResults(self.name, self.kinds)
