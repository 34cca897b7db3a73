"""What is to be measured: how large the stores are, what is done with them, and how many processes compete."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from benchmarks.bench import BenchGrid
from benchmarks.scale.results import COMPETITIONS, OPERATIONS, ClaimCase, StoreCase
from benchmarks.words import at_least, counts, names

SIZES = "10,100,1000,10000,100000"
PROCESSES = "1,2,4,8"
CLAIMS = 1000
REPEATS = 3


def grid(
    device: str,
    *,
    sizes: Annotated[
        str | None, Option(help="Runs in a store (10,100,1000,10000,100000; 3 GB for the last).")
    ] = None,
    operations: Annotated[str | None, Option(help=f"Of {', '.join(OPERATIONS)}; all or none (all).")] = None,
    processes: Annotated[str | None, Option(help="How many compete for claims (1,2,4,8).")] = None,
    claims: Annotated[int | None, Option(help="Runs that they compete for (1000).")] = None,
    repeats: Annotated[int | None, Option(help="Turns of stores up to 1,000 runs (3).")] = None,
    where: Annotated[
        Path | None,
        Option(help="The disk that stores are made on, and removed from [a temporary directory]."),
    ] = None,
) -> BenchGrid:
    """Read the words of a command line; which kind of `device` there is does not matter.

    >>> [str(case) for case in grid("cpu", sizes="10,1000", processes="2").cases]
    ['10 runs', '1,000 runs', '2 processes, 1,000 runs']
    """
    stores = [StoreCase(size) for size in counts("--sizes", sizes, SIZES)]
    number = at_least("--claims", claims, CLAIMS, 1)
    competing = [ClaimCase(count, number) for count in counts("--processes", processes, PROCESSES)]
    chosen = names("--operations", operations, OPERATIONS, "all", everything=True, nothing=True)
    return BenchGrid(
        (*stores, *competing),
        {StoreCase: chosen, ClaimCase: COMPETITIONS},
        repeats=at_least("--repeats", repeats, REPEATS, 1),
        data_dir=where,
    )
