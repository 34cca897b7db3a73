"""What is to be measured, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.bench.calibration.results import ALL_OURS, Case
from softtargets.bench.options import names
from softtargets.exceptions import SofttargetsError

BINS = 15
RIVALS = ("torchmetrics", "torchmetrics streamed", "netcal")
EXAMPLES, CLASSES = 1_000_000, 1000
# Beside a GPU the CPU is there for comparison, per example: it would be the longest part by far.
CPU_EXAMPLES = 50_000
BATCH = 8192
REPEATS = 5
SMALLEST = 8  # fewer examples cannot be quartered to see whether memory grows


@dataclass(frozen=True)
class Plan:
    """Everything one command measures; `batch` is how many examples whoever streams is given at a time."""

    cases: tuple[Case, ...]
    rivals: tuple[str, ...]
    batch: int = BATCH
    repeats: int = REPEATS
    threads: int | None = None
    memory: bool = True

    @property
    def contestants(self) -> tuple[str, ...]:
        """Who takes part in every case."""
        return (*ALL_OURS, *self.rivals)


def plan(
    device: str,
    *,
    examples: int | None = None,
    classes: int | None = None,
    cpu_examples: int | None = None,
    rivals: str | None = None,
    batch: int | None = None,
    repeats: int | None = None,
    threads: int | None = None,
    memory: bool = True,
) -> Plan:
    """The words of a command line as a plan for this kind of device; None is the default.

    >>> plan("cuda", examples=1000, cpu_examples=100, classes=10).cases
    (Case(device='cpu', examples=100, classes=10), Case(device='cuda', examples=1000, classes=10))
    """
    chosen = _at_least("--examples", examples, EXAMPLES, SMALLEST)
    columns = _at_least("--classes", classes, CLASSES, 2)
    beside = _at_least("--cpu-examples", cpu_examples, min(CPU_EXAMPLES, chosen), SMALLEST)
    cases = [Case(device, chosen, columns)]
    if device != "cpu":
        cases.insert(0, Case("cpu", beside, columns))
    return Plan(
        tuple(cases),
        names("--rivals", "all" if rivals is None else rivals, RIVALS, everything=True, nothing=True),
        _at_least("--batch", batch, BATCH, 1),
        _at_least("--repeats", repeats, REPEATS, 1),
        None if threads is None else _at_least("--threads", threads, 1, 1),
        memory,
    )


def _at_least(option: str, given: int | None, default: int, least: int) -> int:
    number = default if given is None else given
    if number < least:
        raise SofttargetsError(f"{option} must be at least {least}, not {number}")
    return number
