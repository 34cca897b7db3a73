"""What a bench is: a grid of cases, contestants that are measured on them, and what is made of the results.

No torch here: what a user misspelt is refused at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.results import BenchResults, CaseResult
from benchmarks.tables import Table, notes

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure

Measure = Callable[[Any], CaseResult[Any]]


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


@dataclass(frozen=True)
class Section:
    """One kind of result: its part of the file, and its table on a terminal, under a heading."""

    kind: type[CaseResult[Any]]
    heading: str
    table: Callable[[BenchResults], Table]


@dataclass(frozen=True)
class Bench:
    """One bench: a command with a name and a help, whose options are the parameters of `grid`.

    How it measures is in ``benchmarks.NAME.measure``, a module that may import torch and whose function ``measurer``
    gives what measures one case after the other.
    """

    name: str
    help: str
    grid: Callable[..., BenchGrid]  # of a kind of device (cuda, cpu) and the words of a command line
    sections: tuple[Section, ...]
    summary: Callable[[Any], str]  # one case in one line, for who watches
    texts: Callable[[BenchResults], dict[str, str]]  # files of text by their names
    drawings: Callable[[BenchResults], dict[str, Figure]]  # pictures by their names
    # Sentences under the tables: what the numbers come to; who was not measured, and why.
    remarks: Callable[[BenchResults], list[str]] = notes
    # Why a command must end with an error after all; empty as it should be.
    wrong: Callable[[BenchResults], str] = lambda results: ""
    packages: tuple[str, ...] = ()  # rivals whose versions are noted in a session
    prelude: str = "starting"  # what happens before the first case

    def measurer(self, grid: BenchGrid, device: torch.device, session: int) -> Measure:
        """What measures the cases of this grid, in the session of this number."""
        found: Measure = import_module(f"benchmarks.{self.name}.measure").measurer(grid, device, session)
        return found

    def results(self) -> BenchResults:
        """Nothing measured yet."""
        return BenchResults(self.name, tuple(section.kind for section in self.sections))
