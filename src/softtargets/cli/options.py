"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from softtargets.cli import completing
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.runs import Run, RunStore

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_RUN = re.compile(r"([0-9a-f]{4,16})(?::(\w+))?")
# What stands in `show_default` is shown as the default; options without one have none.
RunsDir = Annotated[
    Path | None,
    Option(
        "--runs-dir",
        help="The directory that runs are kept in.",
        show_default="SOFTTARGETS_RUNS if set, else ./runs",
    ),
]
DataDir = Annotated[
    Path | None,
    Option(
        "--data-dir",
        help="The directory that datasets are kept in.",
        show_default="SOFTTARGETS_DATA if set, else a directory in your cache: softtargets data where",
    ),
]
Device = Annotated[
    str, Option(help="Where to train: cpu, cuda, cuda:1, ...; auto uses a GPU if there is one.")
]
Json = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a field of the recipe, e.g. optimiser.lr=0.05 (softtargets recipe parts lists them). "
        "May be repeated.",
    ),
]
StudySet = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a field of every recipe of the study, e.g. epochs=80. size=full chooses the paper's whole "
        "grid, in studies that come in sizes (softtargets study list). May be repeated.",
    ),
]
Seeds = Annotated[
    int | None,
    Option(
        help="Number of seeds: each cell of the grid is trained once per seed.",
        show_default="the study's own number",
    ),
]
Workers = Annotated[
    int | None,
    Option(
        min=1,
        help="Processes that train at the same time.",
        show_default="one per core on a CPU, 1 on a GPU",
    ),
]
For = Annotated[
    str | None,
    Option(
        "--for",
        metavar="TIME",
        help="Stop training after this time, counted from the start of the command: 90s, 9m, 1h30m. Unfinished runs "
        "are saved; the same command resumes them.",
        show_default="until everything is done",
    ),
]
CheckpointSeconds = Annotated[
    float, Option(min=0.0, help="Seconds between checkpoints of a run; 0 saves after every step.")
]
TensorBoardDir = Annotated[
    Path | None,
    Option("--tensorboard", metavar="DIR", help="Also log metrics for TensorBoard, one directory per run."),
]
RunId = Annotated[
    str,
    Argument(
        metavar="RUN", help="The run's id, or its first 4 or more digits.", autocompletion=completing.runs
    ),
]
RecipeFile = Annotated[Path, Argument(metavar="RECIPE", help="A YAML file with the recipe.")]
StudyName = Annotated[
    str,
    Argument(
        metavar="STUDY", help="The study's name: softtargets study list.", autocompletion=completing.studies
    ),
]
DatasetName = Annotated[
    str,
    Argument(
        metavar="DATASET",
        help="The dataset's name: softtargets data list.",
        autocompletion=completing.sources,
    ),
]


def run_store(explicit: Path | None) -> RunStore:
    """The runs in the directory of the option, else of the environment, else in ./runs."""
    from softtargets.runs import RunStore

    return RunStore(explicit or os.environ.get("SOFTTARGETS_RUNS") or "runs")


def seconds_of(text: str, option: str = "--for") -> float:
    """A duration as people write it.

    >>> seconds_of("90s"), seconds_of("9m"), seconds_of("1h30m"), seconds_of("1.5h")
    (90.0, 540.0, 5400.0, 5400.0)
    """
    parts = _DURATION.fullmatch(text.strip())
    if parts is None or not any(parts.groups()):
        raise SofttargetsError(f"{option} {text}: give a time with its units, such as 90s, 9m or 1h30m")
    seconds = sum(float(part or 0) * unit for part, unit in zip(parts.groups(), (3600, 60, 1), strict=True))
    if seconds <= 0:
        raise SofttargetsError(f"{option} {text}: the time must be above 0; give at least 1s")
    return seconds


def deadline(text: str | None, begun: float) -> float | None:
    """The moment of `time.monotonic` at which the time of ``--for`` is up."""
    return None if text is None else begun + seconds_of(text)


def find_run(word: str, runs_dir: Path | None) -> tuple[Run | None, str | None]:
    """The run that a word means, ``RUN_ID`` or ``RUN_ID:SPLIT``, and the split; a file that exists is a file."""
    path, found = Path(word), _RUN.fullmatch(word)
    if os.path.exists(path / "run.json"):
        return run_store(path.parent).get(path.name), None
    if found is None or os.path.exists(path):
        return None, None
    return run_store(runs_dir).get(found[1]), found[2]


def worker_count(explicit: int | None, device: str) -> int:
    """Small models do not fill a core, so a CPU trains one run per core; a GPU is shared by the engine."""
    from softtargets.cli import following
    from softtargets.training import choose_device, cores

    if following.started():  # which are the processes there are
        return 1
    return explicit or (cores() if choose_device(device).type == "cpu" else 1)


def assignments(pairs: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Read ``KEY=VALUE`` words; values are read as YAML, so numbers, lists and true/false work."""
    from softtargets.recipes import parse_yaml

    read: dict[str, Any] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise SofttargetsError(f"{option} {pair}: write it as KEY=VALUE, for example optimiser.lr=0.05")
        if not value.strip():
            raise SofttargetsError(
                f"{option} {pair}: there is no value after =; write null for none, and quote a value with spaces"
            )
        read[key.strip()] = parse_yaml(value, f"{option} {pair}")
    return read
