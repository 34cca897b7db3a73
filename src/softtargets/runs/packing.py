"""Runs in one file, to travel: a zip of logs, compact predictions and measures; weights only if they are asked for.

| member | what |
|---|---|
| ``logs.jsonl.gz`` | a line of JSON for each run, as `softtargets runs export` writes it |
| ``predictions.npz`` | test predictions in a few bytes each, as `softtargets runs export --predictions` writes them |
| ``predictions-validation.npz`` | the same of the validation split, where runs kept it |
| ``measures.json`` | what studies measured: run, then study |
| ``files/RUN/NAME`` | weights, predictions in full and checkpoints, where they were asked for |
| ``pack.json`` | checksums of all of these, of the files that were left out, and its own; recipes of unfinished runs |

The same runs always give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from softtargets.exceptions import RunError, SofttargetsError, StorageError
from softtargets.runs.compact import CompactPredictions, together
from softtargets.runs.exporting import log_line
from softtargets.runs.measured import read_measures
from softtargets.runs.run import (
    CHECKPOINT,
    MANIFEST,
    METRICS,
    RECIPE,
    WEIGHTS,
    Run,
    predictions_file,
    sealed,
)
from softtargets.storage import read_bounded, replacing

PACK, LOGS, PREDICTIONS, MEASURES = "pack.json", "logs.jsonl.gz", "predictions.npz", "measures.json"
PACK_FORMAT = 1
SPLITS = ("test", "validation")  # whose predictions travel
_READERS = 8
MOST_FILE = 1 << 34  # bytes of one file of weights, predictions or a checkpoint
Extra = Literal["weights", "predictions", "checkpoints"]
EXTRAS: tuple[Extra, ...] = get_args(Extra)


@dataclass
class Packed:
    """What is in a pack: ids of runs. `left_out` says why others are not."""

    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    bytes: int = 0


def pack_runs(
    runs: Iterable[Run],
    path: Path,
    include: Collection[str] = (),
    splits: Mapping[str, Collection[str]] | None = None,
) -> Packed:
    """Write finished and failed runs to one small file that `merge_runs` reads; returns what is in it.

    include: what else goes into it: "weights", "predictions" (logits and activations, not only the compact ones) and
             "checkpoints" (of runs that are unfinished, whose training then goes on elsewhere).
    splits:  of some runs, by id, the splits whose predictions go into it whatever else does; compressed.

    Damaged runs are left out and named. The file is replaced in one step.
    """
    check_pack_name(path)
    _check_extras(include)
    there = sorted(runs, key=lambda run: run.id)
    with ThreadPoolExecutor(_READERS) as readers:  # checking files takes most of the time
        found = list(readers.map(partial(_parts, include=frozenset(include), splits=splits or {}), there))
    ended = [part for part in found if isinstance(part, _Concluded)]
    begun = [part for part in found if isinstance(part, _Unfinished)]
    damaged = [part for part in found if isinstance(part, str)]
    if not ended and not begun:
        why = "none of the chosen runs is finished; use --with checkpoints to pack unfinished runs"
        raise RunError(f"nothing to pack in {path}: {[*damaged, why][0]}")
    size = _write_pack(path, ended, begun)
    by_status: dict[str, list[str]] = {"finished": [], "failed": []}
    for part in ended:
        by_status[part.run.status].append(part.run.id)
    return Packed(**by_status, unfinished=[part.run.id for part in begun], left_out=damaged, bytes=size)


def check_pack_name(path: Path) -> None:
    """Refuse a name by which nobody would know the file."""
    if path.suffix.lower() != ".zip":
        raise StorageError(f"{path} does not end in .zip; runs are packed into a .zip file")


def _check_extras(include: Iterable[str]) -> None:
    if unknown := set(include) - set(EXTRAS):
        raise RunError(f"'{min(unknown)}' cannot be packed; allowed: {', '.join(EXTRAS)}")


@dataclass(frozen=True)
class _Concluded:
    """What goes into a pack of a finished or failed run; large files are read when they are written.

    predictions: compact ones, by split.
    compressed:  those of its files that are small enough to be.
    """

    run: Run
    line: str
    files: Mapping[str, Any]
    left_out: Mapping[str, Any]
    predictions: Mapping[str, CompactPredictions]
    measures: Mapping[str, Any]
    compressed: frozenset[str]


@dataclass(frozen=True)
class _Unfinished:
    run: Run
    recipe: Mapping[str, Any]


def _parts(
    run: Run, include: frozenset[str], splits: Mapping[str, Collection[str]]
) -> _Concluded | _Unfinished | str | None:
    """What goes into a pack of a run, if anything does; of a damaged run what is wrong with it."""
    try:
        if (run.directory / MANIFEST).exists():
            return _concluded(run, include, splits.get(run.id, ()))
        if "checkpoints" in include and (run.directory / CHECKPOINT).exists():
            return _Unfinished(run, run.recipe.to_dict())
    except SofttargetsError as error:
        return str(error)
    return None


def _concluded(run: Run, include: frozenset[str], splits: Collection[str]) -> _Concluded:
    line, files = log_line(run), run.manifest["files"]
    small = {name for name in map(predictions_file, splits) if name in files}
    chosen = {name: told for name, told in files.items() if name in small or _is_wanted(name, include)}
    if damaged := run.problems(thorough=bool(chosen)):
        raise RunError(f"{damaged[0]}; run {run.id} is damaged")
    left_out = {
        name: told
        for name, told in (files | run.left_out).items()
        if name not in (RECIPE, METRICS, *chosen) and not name.startswith("compact/")
    }
    predictions = {split: run.compact(split) for split in SPLITS if run.has_compact(split)}
    measures = {study: found.to_dict() for study, found in read_measures(run).items()}
    return _Concluded(run, line, chosen, left_out, predictions, measures, frozenset(small))


def _is_wanted(name: str, include: frozenset[str]) -> bool:
    if name == WEIGHTS:
        return "weights" in include
    return name.startswith("predictions/") and "predictions" in include


def _write_pack(path: Path, ended: Sequence[_Concluded], begun: Sequence[_Unfinished]) -> int:
    """Write the file in one step; returns its size."""
    small = _small_members(ended)
    about: dict[str, Any] = {
        "format": PACK_FORMAT,
        "members": {name: checksum(content) for name, content in small.items()},
        "runs": {part.run.id: {"files": part.files, "left_out": part.left_out} for part in ended},
        "unfinished": {},
    }
    with replacing(path) as file:
        with ZipFile(file, "w") as archive:
            for name, content in sorted(small.items()):
                _write(archive, name, content, compressed=name.endswith(".json"))
            for concluded in ended:
                run = concluded.run
                for name in sorted(concluded.files):
                    compressed = name in concluded.compressed
                    _write(archive, member(run.id, name), _read(run, name), compressed)
            for unfinished in begun:
                # As it is at this moment: its process may be replacing it.
                content = _read(unfinished.run, CHECKPOINT)
                files = {CHECKPOINT: checksum(content)}
                about["unfinished"][unfinished.run.id] = {"recipe": unfinished.recipe, "files": files}
                _write(archive, member(unfinished.run.id, CHECKPOINT), content)
            account = json.dumps(sealed(about), separators=(",", ":"), sort_keys=True)
            _write(archive, PACK, account.encode(), compressed=True)
        return file.tell()


def _small_members(ended: Sequence[_Concluded]) -> dict[str, bytes]:
    """Logs, measures and compact predictions of all runs."""
    measures = {part.run.id: part.measures for part in ended if part.measures}
    small = {
        LOGS: gzip.compress("".join(part.line for part in ended).encode(), mtime=0),
        MEASURES: json.dumps(measures, separators=(",", ":"), allow_nan=False).encode(),
    }
    for split in SPLITS:
        there = {part.run.id: part.predictions[split] for part in ended if split in part.predictions}
        if there:
            small[predictions_of(split)] = together(there)
    return small


def _read(run: Run, name: str) -> bytes:
    return read_bounded(run.directory / name, MOST_FILE)


def predictions_of(split: str) -> str:
    """Where the compact predictions on a split are, in a pack and beside a page.

    >>> predictions_of("test"), predictions_of("validation")
    ('predictions.npz', 'predictions-validation.npz')
    """
    return PREDICTIONS if split == "test" else f"predictions-{split}.npz"


def member(run: str, name: str) -> str:
    """Where a file of a run lies in a pack."""
    return f"files/{run}/{name}"


def checksum(content: bytes) -> dict[str, Any]:
    """Size and SHA-256, as manifests have them of files."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _write(archive: ZipFile, name: str, content: bytes, compressed: bool = False) -> None:
    about = ZipInfo(name)  # of 1980, whenever it is made
    about.external_attr = 0o644 << 16
    about.create_system = 3
    about.compress_type = ZIP_DEFLATED if compressed else ZIP_STORED
    archive.writestr(about, content)
