"""Which executor trains: the options that commands share, and what they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.executors import Executor

ExecutorName = Annotated[
    str,
    Option(
        "--executor",
        metavar="NAME",
        help="What trains the runs: local (this machine), ranks (several processes of this machine train each run "
        "together: docs/ranks.md) or ray (the workers of a Ray cluster: docs/cluster.md).",
    ),
]
Address = Annotated[
    str | None,
    Option(
        "--address",
        metavar="HOST:PORT",
        help="With --executor ray: the address of a running cluster; auto finds the one on this machine.",
        show_default="RAY_ADDRESS if set, else a local Ray is started for this command",
    ),
]
Ranks = Annotated[
    int | None,
    Option(
        "--ranks",
        min=1,
        metavar="N",
        help="With --executor ranks: how many processes train each run together, each on its own GPU.",
        show_default="one per GPU",
    ),
]
CpusPerWorker = Annotated[
    int | None,
    Option(
        "--cpus-per-worker",
        min=1,
        help="With --executor ray: CPU cores, and torch threads, per worker.",
        show_default="1",
    ),
]
GpusPerWorker = Annotated[
    float | None,
    Option(
        "--gpus-per-worker",
        help="With --executor ray: GPUs per worker, 1 or a fraction such as 0.5 to put two workers on each GPU.",
        show_default="1",
    ),
]
MemoryPerWorker = Annotated[
    float | None,
    Option(
        "--memory-per-worker",
        help="With --executor ray: gigabytes of memory that Ray reserves per worker.",
        show_default="none is reserved",
    ),
]
# Options of a page's command that say how it was trained, not what: the page is the same without them.
PARAMETERS = ("executor", "address", "ranks", "cpus_per_worker", "gpus_per_worker", "memory_per_worker")


def chosen(executor: str, device: str, **options: Any) -> Executor:
    """The executor that the options mean; one that works elsewhere has devices of its own."""
    from softtargets.executors import make_executor

    try:
        made = make_executor(executor, **options)
        if not made.here:
            made = make_executor(executor, device=device, **options)
        return made
    except SofttargetsError as mistake:
        said = mistake.with_options({name: f"--{name.replace('_', '-')}" for name in options})
        raise SofttargetsError(said) from None


def worker_count(executor: Executor, explicit: int | None, device: str) -> int | None:
    """How many processes an executor is asked for; one that works elsewhere knows better, unless we are told."""
    from softtargets.cli import options

    return options.worker_count(explicit, device) if executor.here else explicit
