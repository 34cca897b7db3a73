"""What is to be measured, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from benchmarks.bench import BenchGrid
from benchmarks.calibration.results import ALL_OURS, CalibrationCase
from benchmarks.words import at_least, names

BINS = 15
RIVALS = ("torchmetrics", "torchmetrics streamed", "netcal")
EXAMPLES, CLASSES = 1_000_000, 1000
# Beside a GPU the CPU is there for comparison, per example: it would be the longest part by far.
CPU_EXAMPLES = 50_000
BATCH = 8192
REPEATS = 5
SMALLEST = 8  # fewer examples cannot be quartered to see whether memory grows


def grid(
    device: str,
    *,
    examples: Annotated[int | None, Option(help="How many examples (1000000).")] = None,
    classes: Annotated[int | None, Option(help="How many classes (1000).")] = None,
    cpu_examples: Annotated[
        int | None, Option(help="Beside a GPU: how many examples on the CPU, to compare with (50000).")
    ] = None,
    rivals: Annotated[
        str | None, Option(help="Of torchmetrics, torchmetrics streamed, netcal; all or none (all).")
    ] = None,
    batch: Annotated[int | None, Option(help="Examples at a time where they are streamed (8192).")] = None,
    repeats: Annotated[int | None, Option(help="How many turns everybody takes (5).")] = None,
    threads: Annotated[int | None, Option(help="Threads of torch on the CPU (its own choice).")] = None,
    memory: Annotated[
        bool, Option("--memory/--no-memory", help="Also how much memory everybody takes.")
    ] = True,
) -> BenchGrid:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> [str(case) for case in grid("cuda", examples=1000, cpu_examples=100, classes=10).cases]
    ['cpu, 100 x 10', 'cuda, 1,000 x 10']
    """
    chosen = at_least("--examples", examples, EXAMPLES, SMALLEST)
    columns = at_least("--classes", classes, CLASSES, 2)
    beside = at_least("--cpu-examples", cpu_examples, min(CPU_EXAMPLES, chosen), SMALLEST)
    cases = [CalibrationCase(device, chosen, columns)]
    if device != "cpu":
        cases.insert(0, CalibrationCase("cpu", beside, columns))
    against = names("--rivals", rivals, RIVALS, "all", everything=True, nothing=True)
    return BenchGrid(
        tuple(cases),
        {CalibrationCase: (*ALL_OURS, *against)},
        repeats=at_least("--repeats", repeats, REPEATS, 1),
        threads=None if threads is None else at_least("--threads", threads, 1, 1),
        batch=at_least("--batch", batch, BATCH, 1),
        memory=memory,
        together=True,  # a GPU is compared with the CPU of its own session
    )
