"""What a file offers to a store: the runs of a pack, or of the directory of a study's page. Nothing in it is trusted.

Names in a file never become paths: only what a run may consist of is asked for, by names that are made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

from softtargets.exceptions import RecipeError, RunError
from softtargets.recipes import Recipe
from softtargets.runs.compact import CompactPredictions, apart
from softtargets.runs.measured import Measured, is_study_name
from softtargets.runs.packing import (
    LOGS,
    MEASURES,
    MOST_FILE,
    PACK,
    PACK_FORMAT,
    SPLITS,
    checksum,
    member,
    predictions_of,
)
from softtargets.runs.provenance import provenance_problem
from softtargets.runs.run import CHECKPOINT, MANIFEST, WEIGHTS, is_manifest, predictions_file, seal_of
from softtargets.storage import Archive, parse_json, read_bounded, storage_errors, unzipped

RESULTS = "results.json"  # of a study's page
TEACHERS = "teachers"  # a directory beside pages: packs of teachers whose students are still to be trained
_MOST = 1 << 30  # bytes of a small member
_MOST_LOGS = 1 << 32  # bytes of all logs, unpacked
_PREDICTIONS = {split: predictions_of(split) for split in SPLITS}
_NAME = re.compile(r"weights\.safetensors|predictions/\w{1,40}\.safetensors")


@dataclass(frozen=True)
class OfferedRun:
    """A run as a file tells it, proven to be of its recipe.

    compact:  compact predictions, by split.
    files:    weights and predictions in full, where they are offered: how to read each.
    known:    size and checksum of those, and of what was left out, where they are told.
    left_out: files that the training left and that are not offered.
    """

    recipe: Recipe
    status: str
    history: list[dict[str, Any]]
    provenance: dict[str, Any]
    compact: Mapping[str, CompactPredictions] = field(default_factory=dict)
    measures: Mapping[str, Measured] = field(default_factory=dict)
    files: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    known: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The recipe's hash."""
        return self.recipe.id


@dataclass(frozen=True)
class OfferedCheckpoint:
    """An unfinished run."""

    recipe: Recipe
    read: Callable[[], bytes]


@dataclass
class Offer:
    """All that one file or directory offers; `refused` says what is wrong with the runs that it does not."""

    source: Path
    runs: list[OfferedRun] = field(default_factory=list)
    checkpoints: list[OfferedCheckpoint] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def sources(path: Path) -> list[Path]:
    """The packs and directories of results that a path means: itself, or all that lie directly in it.

    Of teachers the packs, which lie one directory deeper, come last: they add to what pages know of the same runs.
    """
    if not path.is_dir() or _is_results(path):
        return [path]
    with storage_errors(path, "read"):
        found = [item for item in sorted(path.iterdir()) if item.suffix == ".zip" or _is_results(item)]
        found += sorted((path / TEACHERS).glob("*.zip"))
    if not found:
        if any(path.glob(f"*/{MANIFEST}")):
            raise RunError(
                f"{path} is itself a directory of runs; put them into a file first: "
                f"`softtargets runs pack FILE.zip --runs-dir {path}`, with --with weights for all of them"
            )
        raise RunError(
            f"{path} has no runs to merge: no packs (FILE.zip, written by `softtargets runs pack`) and no "
            f"directories of results with {LOGS}"
        )
    return found


def _is_results(path: Path) -> bool:
    return (path / LOGS).is_file() or (path / RESULTS).is_file()


@contextmanager
def offer_of(source: Path) -> Iterator[Offer]:
    """What a pack or a directory of results offers; large files can be read while it is open.

    A file that is damaged where all of its runs depend on it is refused as a whole.
    """
    with ExitStack() as opened:
        try:
            if source.is_dir():
                offer = _of_results(source)
            else:
                offer = _of_pack(source, opened.enter_context(Archive.open(source)))
        except ValueError as error:
            raise RunError(
                f"{source} is not a pack of runs, or is damaged: {error}. Nothing was merged from it; make it again "
                "with `softtargets runs pack`"
            ) from None
        yield offer


def _of_pack(source: Path, archive: Archive) -> Offer:
    about = parse_json(archive.read(PACK, _MOST))
    _check_account(about)
    _check_names(archive.names, about)
    small = {name: _checked(archive, name, told) for name, told in about["members"].items()}
    predictions, measures = _predictions(small), parse_json(small[MEASURES])
    offer = Offer(source)
    for run in _logged(unzipped(small[LOGS], _MOST_LOGS), offer.refused):
        with _refusing(offer, run["id"]):
            one = about["runs"][run["id"]]
            known = {**one["files"], **one["left_out"]}
            if odd := [name for name in known if not _NAME.fullmatch(name)]:
                raise ValueError(f"{odd[0]!r} is not a file of a run")
            files = _files(archive, run["id"], one["files"])
            parts = {"compact": predictions.get(run["id"], {}), "files": files, "known": known}
            found = _measures(measures.get(run["id"], {}))
            offer.runs.append(_offered(run, measures=found, left_out=one["left_out"], **parts))
    for identity, one in about["unfinished"].items():
        with _refusing(offer, identity):
            recipe = _recipe(one["recipe"], identity)
            files = _files(archive, identity, one["files"])
            offer.checkpoints.append(OfferedCheckpoint(recipe, files[CHECKPOINT]))
    return offer


def _check_names(names: Iterable[str], about: Mapping[str, Any]) -> None:
    """Refuse members that the account of a pack does not list."""
    told = {**about["runs"], **about["unfinished"]}
    files = {member(run, name) for run, one in told.items() for name in one["files"]}
    if strange := sorted(set(names) - files - {PACK, *about["members"]}):
        raise ValueError(f"it has a member named {strange[0]!r}, which it does not list")


def _checked(archive: Archive, name: str, told: Any) -> bytes:
    content = archive.read(name, _MOST)
    if checksum(content) != told:
        raise ValueError(f"{name} has changed since it was written")
    return content


def _predictions(contents: Mapping[str, bytes]) -> dict[str, dict[str, CompactPredictions]]:
    """Compact predictions by run, then by split."""
    found: dict[str, dict[str, CompactPredictions]] = {}
    for split, name in _PREDICTIONS.items():
        for run, one in (apart(contents[name]) if name in contents else {}).items():
            found.setdefault(run, {})[split] = one
    return found


def _check_account(about: Any) -> None:
    """Refuse what is no account of a pack, was edited, or is of a version to come."""
    if not isinstance(about, dict) or about.get("sha256") != seal_of(about):
        raise ValueError(f"{PACK} has changed since it was written")
    if about.get("format") != PACK_FORMAT:
        raise ValueError(f"its format is {about.get('format')}, and this version reads {PACK_FORMAT}")
    fits = all(isinstance(about.get(key), dict) for key in ("members", "runs", "unfinished"))
    fits = fits and {LOGS, MEASURES} <= about["members"].keys() <= {LOGS, MEASURES, *_PREDICTIONS.values()}
    fits = fits and all(_is_account(one) for key in ("runs", "unfinished") for one in about[key].values())
    if not fits:
        raise ValueError(f"{PACK} does not describe a pack")


def _is_account(one: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(one, dict) or not isinstance(one.get("files"), dict):
        return False
    listed = [*one["files"].values()]
    return isinstance(one.get("left_out", {}), dict) and all(isinstance(told, dict) for told in listed)


def _files(archive: Archive, run: str, told: Mapping[str, Any]) -> dict[str, Callable[[], bytes]]:
    """How to read the files of a run, all of which are checked now."""
    for name, expected in told.items():
        if archive.sha256(member(run, name), MOST_FILE) != expected.get("sha256"):
            raise ValueError(f"its {name} has changed since it was written")
    return {name: partial(archive.read, member(run, name), MOST_FILE) for name in told}


def _of_results(source: Path) -> Offer:
    """The directory of a study's page: logs, predictions if they are there, and what was measured."""
    offer = Offer(source)
    with storage_errors(source, "read"):
        there = {
            name: read_bounded(source / name, _MOST)
            for name in (LOGS, RESULTS, *_PREDICTIONS.values())
            if (source / name).is_file()
        }
    if LOGS not in there:  # a study that only computes
        return offer
    predictions = _predictions(there)
    measured = measures_of_page(parse_json(there[RESULTS])) if RESULTS in there else {}
    for run in _logged(unzipped(there[LOGS], _MOST_LOGS), offer.refused):
        with _refusing(offer, run["id"]):
            found = predictions.get(run["id"], {})
            names = [WEIGHTS, *map(predictions_file, found)]
            left_out: dict[str, Any] = {name: {} for name in names} if run["status"] == "finished" else {}
            parts = {"compact": found, "measures": measured.get(run["id"], {}), "left_out": left_out}
            offer.runs.append(_offered(run, **parts))
    return offer


def measures_of_page(results: Any) -> dict[str, dict[str, Measured]]:
    """What a page's ``results.json`` says was measured on each run: by run, then by study."""
    try:
        study, rows = results["study"], results.get("tables", {}).get("runs", [])
        kept = results.get("kept", {})
        details, earlier = kept.get("details", {}), kept.get("measured", {})
        made = results.get("provenance", {})
        code, at = str(made.get("softtargets", "")), str(made.get("made", ""))
        if not is_study_name(study):
            raise ValueError(f"{study!r} is not the name of a study")
        found: dict[str, dict[str, Measured]] = {}
        for row in rows:
            if row["status"] == "finished":
                one = {"measures": measured_in(row), "details": details.get(row["run"], {})}
                one |= {"code": code, "measured": at, **earlier.get(row["run"], {})}
                found.setdefault(row["run"], {})[study] = Measured.from_dict(one)
        return found
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"{RESULTS} does not belong to a study: {error!r}") from None


def measured_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """The measures in a row of a page's table of runs: what stands between its status and its seconds.

    >>> measured_in({"run": "a", "alpha": 0.1, "status": "finished", "error": 0.2, "spread": None, "seconds": 3.0})
    {'error': 0.2}
    """
    keys = list(row)
    after = keys[keys.index("status") + 1 :] if "status" in row else []
    return {key: row[key] for key in after if key != "seconds" and row[key] is not None}


@contextmanager
def _refusing(offer: Offer, run: str) -> Iterator[None]:
    """Name a run that cannot be taken; the others are not affected."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecipeError) as error:
        what = f"it lists no {error}" if isinstance(error, KeyError) else error
        offer.refused.append(f"run {run} in {offer.source} is refused: {what}")


def _logged(content: bytes, refused: list[str]) -> list[dict[str, Any]]:
    """The lines of logs that are of a run each; of others it is said which."""
    found = []
    for place, line in enumerate(content.splitlines(), 1):
        run = parse_json(line)
        if not isinstance(run, dict) or not isinstance(run.get("id"), str):
            refused.append(f"line {place} of {LOGS} describes no run")
        else:
            found.append(run)
    return found


def _recipe(tree: Any, identity: str) -> Recipe:
    recipe = Recipe.from_dict(tree)
    if recipe.id != identity:
        raise ValueError(f"its recipe belongs to run {recipe.id}")
    return recipe


def _offered(run: Mapping[str, Any], **parts: Any) -> OfferedRun:
    history, status = run.get("history"), run.get("status")
    rows = isinstance(history, list) and all(isinstance(row, dict) for row in history)
    if not rows or not is_manifest({**run, "files": {}}):
        raise ValueError("its line in the logs does not describe a run")
    assert isinstance(history, list)
    if run["summary"] != (history[-1] if history else {}):
        raise ValueError("its summary is not its last row of metrics")
    recipe = _recipe(run["recipe"], run["id"])
    if problem := provenance_problem(run["provenance"], recipe.data.unit):
        raise ValueError(problem)
    return OfferedRun(recipe, str(status), history, run["provenance"], **parts)


def _measures(tree: Any) -> dict[str, Measured]:
    if not isinstance(tree, dict) or not all(map(is_study_name, tree)):
        raise ValueError("its measures are not listed by study")
    return {study: Measured.from_dict(one) for study, one in tree.items()}
