"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.runs import Run, RunStore

_RUN = re.compile(r"([0-9a-f]{4,16})(?::(\w+))?")
RunsDir = Annotated[
    Path | None, Option("--runs-dir", help="Where runs are kept [env SOFTTARGETS_RUNS; else ./runs].")
]
DataDir = Annotated[
    Path | None,
    Option("--data-dir", help="Where datasets are [env SOFTTARGETS_DATA; else a user cache]."),
]
Device = Annotated[str, Option(help="auto, cpu, cuda, cuda:1, ...")]
Json = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Set = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Change a recipe field, e.g. optimiser.lr=0.05."),
]
Workers = Annotated[
    int | None,
    Option(min=1, help="Processes that train side by side [the cores on a CPU, 1 on a GPU]."),
]
CheckpointSeconds = Annotated[
    float, Option(min=0.0, help="Seconds between checkpoints of a run (0: after every step).")
]

TensorBoardDir = Annotated[
    Path | None,
    Option("--tensorboard", metavar="DIR", help="Also log metrics for TensorBoard, in a directory per run."),
]


def run_store(explicit: Path | None) -> RunStore:
    """The runs in the directory of the option, else of the environment, else in ./runs."""
    from softtargets.runs import RunStore

    return RunStore(explicit or os.environ.get("SOFTTARGETS_RUNS") or "runs")


def find_run(word: str, runs_dir: Path | None) -> tuple[Run | None, str | None]:
    """The run that a word means, ``RUN_ID`` or ``RUN_ID:SPLIT``, and the split; a file that exists is a file."""
    path, found = Path(word), _RUN.fullmatch(word)
    if os.path.exists(path / "run.json"):
        return run_store(path.parent).get(path.name), None
    if found is None or os.path.exists(path):
        return None, None
    return run_store(runs_dir).get(found[1]), found[2]


def worker_count(explicit: int | None, device: str) -> int:
    """Small nets do not fill a core, so a CPU trains one run per core; a GPU is shared by the engine."""
    from softtargets.training import choose_device, cores

    return explicit or (cores() if choose_device(device).type == "cpu" else 1)


def assignments(pairs: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Read ``KEY=VALUE`` words; values are read as YAML, so numbers, lists and true/false work."""
    from softtargets.recipes import parse_yaml

    read: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise SofttargetsError(f"{option} {pair}: write it as KEY=VALUE, for example optimiser.lr=0.05")
        read[key.strip()] = parse_yaml(value, f"{option} {pair}")
    return read
