"""Runs of other machines into a store: nothing doubled, nothing replaced by less, and whatever disagrees is named."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softtargets.exceptions import RunError
from softtargets.recipes import Recipe
from softtargets.runs.engines import engine_of, rounding_of
from softtargets.runs.measured import Measured, read_measures, write_measures
from softtargets.runs.offers import OfferedCheckpoint, OfferedRun, offer_of, sources
from softtargets.runs.packing import MOST_FILE, checksum
from softtargets.runs.run import CHECKPOINT, METRICS, WEIGHTS, Run, compact_file, predictions_file
from softtargets.runs.store import RunStore
from softtargets.runs.writer import Contents, RunWriter, metrics_content
from softtargets.storage import read_bounded

_AT_ONCE = 8  # most of the time goes into waiting for the disk


@dataclass(frozen=True)
class Conflict:
    """Two trainings of one recipe that came to different numbers. `kept` says why the stored one stays."""

    run: str
    differing: tuple[str, ...]
    here: str
    offered: str
    kept: str

    def __str__(self) -> str:
        return (
            f"run {self.run}: {' and '.join(self.differing)} differ. Here: {self.here}. Offered: {self.offered}. "
            f"The run that is here stays{self.kept}"
        )


@dataclass
class Merged:
    """What came of merging, by ids of runs.

    added:     were not there.
    upgraded:  were there and have got files they lacked: weights, predictions.
    replaced:  had other numbers and were replaced, as was asked or since a newer engine made the others.
    outdated:  are here by a newer engine, so the offered ones, with other numbers, were left out.
    unchanged: were there with the same numbers.
    measured:  have got measures of studies, beyond those that are new with their run.
    continued: unfinished ones that have got a checkpoint.
    busy:      are being written by another process and were left alone.
    refused:   sentences about what could not be taken.
    """

    added: list[str] = field(default_factory=list)
    upgraded: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    measured: list[str] = field(default_factory=list)
    continued: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        """Whether all that was offered is in the store now, or was there."""
        return not (self.busy or self.conflicts or self.refused)

    def __iadd__(self, other: Merged) -> Merged:
        for name, found in vars(other).items():
            getattr(self, name).extend(found)
        return self


def merge_runs(path: Path, store: RunStore, replace: bool = False) -> Merged:
    """Take the runs of a pack, of a study's results directory, or of all those in a directory, into a store.

    A run that is there stays; what it lacks (weights, predictions, measures) is added. Where the same recipe came to
    other numbers, that is a conflict, and the stored run stays too. With `replace` the offered one takes its place,
    unless it failed or lacks weights that are here. Versions of the engine that compute a recipe differently come to
    different numbers by what they are: an offered run by an older one is left out, and a light run gives way to one by
    a newer. Where they compute it alike, other numbers are a conflict as of one version.
    """
    merged = Merged()
    for source in sources(path):
        with offer_of(source) as offer:
            merged.refused += offer.refused
            merge = _Merge(store, replace)
            with ThreadPoolExecutor(_AT_ONCE) as workers:
                for found in workers.map(merge.run, offer.runs):
                    merged += found
                for found in workers.map(merge.checkpoint, offer.checkpoints):
                    merged += found
    return merged


@dataclass(frozen=True)
class _Merge:
    store: RunStore
    replace: bool

    def run(self, offered: OfferedRun) -> Merged:
        """Take in one run; what is wrong with the stored one is said and affects no other."""
        try:
            writer = self.store.claim(offered.recipe)
            if writer is None:
                return Merged(busy=[offered.id])
            with writer:
                if not writer.finished:
                    _take_in(writer, offered)
                    return Merged(added=[offered.id])
                return self._into_stored(writer, offered)
        except RunError as error:
            return Merged(refused=[f"run {offered.id} was not merged: {error}"])

    def _into_stored(self, writer: RunWriter, offered: OfferedRun) -> Merged:
        run = Run(writer.run.directory)
        if problems := run.problems(thorough=False):
            raise RunError(
                f"{problems[0]}; delete it with `softtargets runs delete {run.id}` and merge again"
            )
        if differing := _differing(run, offered):
            return self._conflict(writer, run, offered, differing)
        lacking = _lacking(run, offered)
        if lacking:
            run = writer.add_files(lacking)
            if WEIGHTS in lacking:
                (run.directory / CHECKPOINT).unlink(missing_ok=True)
        measured = _add_measures(run, offered.measures)
        found = Merged(upgraded=[run.id]) if lacking else Merged(unchanged=[run.id])
        return Merged(**{**vars(found), "measured": [run.id] if measured else []})

    def _conflict(self, writer: RunWriter, run: Run, offered: OfferedRun, differing: list[str]) -> Merged:
        here, there = (rounding_of(offered.recipe, one.provenance) for one in (run, offered))
        if there < here:  # other numbers were to be expected
            return Merged(outdated=[run.id])
        kept = _why_not_replaced(run, offered)
        if (self.replace or (run.is_light and there > here)) and not kept:
            self._swap(writer, offered)
            return Merged(replaced=[run.id])
        kept = f", since {kept}" if kept else "; with --replace the offered run is taken instead"
        told = (_origin(run.status, run.provenance), _origin(offered.status, offered.provenance))
        return Merged(conflicts=[Conflict(run.id, tuple(differing), *told, kept)])

    def _swap(self, writer: RunWriter, offered: OfferedRun) -> None:
        """The offered run in the place of the stored one, which is gone only when the other is there."""
        directory = writer.run.directory
        aside = directory.with_name(f".deleted-{offered.id}-{secrets.token_hex(4)}")
        directory.rename(aside)
        fresh = self.store.claim(offered.recipe)
        if fresh is None:
            raise RunError(f"another process has started to train it; the previous run is kept in {aside}")
        try:
            with fresh:
                _take_in(fresh, offered)
        except BaseException:
            shutil.rmtree(directory)
            aside.rename(directory)
            raise
        shutil.rmtree(aside)

    def checkpoint(self, offered: OfferedCheckpoint) -> Merged:
        """Take in an unfinished run, unless it is finished here or further on."""
        recipe = offered.recipe
        try:
            content = offered.read()
            step = _step(content, recipe)
            writer = self.store.claim(recipe)
            if writer is None:
                return Merged(busy=[recipe.id])
            with writer:
                if writer.finished or _step_here(writer.run.directory / CHECKPOINT, recipe) >= step:
                    return Merged(unchanged=[recipe.id])
                writer.put_checkpoint(content)
            return Merged(continued=[recipe.id])
        except RunError as error:
            return Merged(refused=[f"run {recipe.id} was not merged: {error}"])


def _take_in(writer: RunWriter, offered: OfferedRun) -> None:
    files = {**offered.files, **_compact_besides(offered, offered.files)}
    run = writer.take_in(offered.status, offered.history, offered.provenance, files, offered.left_out)
    _add_measures(run, offered.measures)


def _lacking(run: Run, offered: OfferedRun) -> Contents:
    """Files that are offered and not here."""
    here = run.manifest["files"]
    files = {name: read for name, read in offered.files.items() if name not in here}
    return files | _compact_besides(offered, {*here, *files})


def _compact_besides(offered: OfferedRun, files: Collection[str]) -> dict[str, Callable[[], bytes]]:
    """Compact predictions of splits that are not among files, in full or compact."""
    return {
        compact_file(split): found.to_bytes
        for split, found in offered.compact.items()
        if predictions_file(split) not in files and compact_file(split) not in files
    }


def _add_measures(run: Run, offered: Mapping[str, Measured]) -> bool:
    """Keep measures of further studies, and later ones of a run that cannot be measured here; whether any are new."""
    here, added = read_measures(run), False
    for study, found in offered.items():
        before = here.get(study)
        later = before is not None and bool(run.left_out) and found.at > before.at
        if before is None or (later and not before.says_the_same_as(found)):
            write_measures(run, study, found)
            added = True
    return added


def _differing(run: Run, offered: OfferedRun) -> list[str]:
    """In what a stored run and an offered one of the same recipe differ."""
    if run.status != offered.status:
        return ["status"]
    found = []
    told = run.manifest["files"].get(METRICS, {}).get("sha256")
    if checksum(metrics_content(offered.history))["sha256"] != told and run.history() != offered.history:
        found.append("metrics")
    if not all(_same_predictions(run, offered, split) for split in offered.compact):
        found.append("predictions")
    return found


def _same_predictions(run: Run, offered: OfferedRun, split: str) -> bool:
    """Whether the predictions on a split are the same, as far as both have any."""
    name = predictions_file(split)
    here = (run.manifest["files"] | run.left_out).get(name, {}).get("sha256")
    there = offered.known.get(name, {}).get("sha256")
    if here is not None and here == there:
        return True
    return not run.has_compact(split) or run.compact(split).says_the_same_as(offered.compact[split])


def _why_not_replaced(run: Run, offered: OfferedRun) -> str:
    """Why an offered run with other numbers would be worse than the stored one; empty where it is not."""
    if run.status == "finished" and offered.status != "finished":
        return "the offered run failed"
    if WEIGHTS in run.manifest["files"] and WEIGHTS not in offered.files:
        return (
            f"the offered run has no weights (to take it nevertheless: `softtargets runs delete {run.id}`, then "
            "merge again)"
        )
    return ""


def _origin(status: str, provenance: Mapping[str, Any]) -> str:
    """Where a run comes from, in some words."""
    commit = str(provenance.get("commit") or "")[:12]
    parts = [status, f"engine {engine_of(provenance)}", f"commit {commit}" if commit else "no commit"]
    parts += [str(provenance[key]) for key in ("device_name", "finished") if key in provenance]
    return ", ".join(parts)


def _step(content: bytes, recipe: Recipe) -> int:
    """How far a checkpoint is, from the head of its file: the tensors are checked by whoever goes on from it."""
    try:
        size = int.from_bytes(content[:8], "little")
        about = json.loads(content[8 : 8 + size])["__metadata__"]
        return int(json.loads(about["progress"])["step"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"the checkpoint of run {recipe.id} cannot be read ({error!r})") from None


def _step_here(path: Path, recipe: Recipe) -> int:
    return _step(read_bounded(path, MOST_FILE), recipe) if path.exists() else -1
