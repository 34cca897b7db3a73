"""A finished run, read from its directory. Nothing here writes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softtargets.exceptions import RecipeError, RunError, StorageError
from softtargets.recipes import Recipe
from softtargets.runs.compact import CompactPredictions
from softtargets.storage import digest, read_bounded, read_json

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST = "run.json"
RECIPE = "recipe.json"
METRICS = "metrics.jsonl"
WEIGHTS = "weights.safetensors"
CHECKPOINT = "checkpoint.safetensors"
LOCK = "lock"
MOST_METRICS = 1 << 30  # bytes


# "test:scores" keeps what a net says of the test set without its penultimate activations, which take a hundred times as
# much room.
SCORES = ":scores"
_SCORES = frozenset({"logits", "labels", "clean_labels"})


def predictions_file(split: str) -> str:
    """Where the predictions on a split lie inside a run directory."""
    return f"predictions/{split}.safetensors"


def compact_file(split: str) -> str:
    """Where a light run has its predictions on a split in a few bytes each."""
    return f"compact/{split}.npz"


class NotStoredError(RunError):
    """Asked for something of a run that is not kept with it: of a light run, or beside a page."""


@dataclass(frozen=True)
class Predictions:
    """The predictions of a run's model for one split, example by example, in the order of the dataset.

    `labels` are those it was trained or measured on. `clean_labels` are the labels as read, where noise was put on
    them; None where there was none, and in runs of before they were kept. `features` are (examples, 0) where only
    scores were kept.
    """

    logits: Tensor
    labels: Tensor
    features: Tensor
    clean_labels: Tensor | None = None


@dataclass(frozen=True)
class Run:
    """A finished (or failed) run on disk.

    Every read is checked against the manifest, so a truncated or edited file is an error, not a number. A light run
    came from a file (`softtargets runs merge`) and has its logs and compact predictions, but no weights.
    """

    directory: Path

    def __repr__(self) -> str:
        try:
            summary = {k: v for k, v in self.summary.items() if isinstance(v, float) and k.startswith("test")}
            told = ", ".join([self.status, *(f"{name} {value:.4g}" for name, value in summary.items())])
        except RunError:
            told = "not readable" if (self.directory / MANIFEST).exists() else "not finished"
        return f"Run({self.id}: {told}; {self.directory})"

    @property
    def id(self) -> str:
        """The recipe's hash, which is also the directory's name."""
        return self.directory.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's own account of itself: status, summary, files, provenance."""
        path = self.directory / MANIFEST
        try:
            manifest = read_json(path)
        except FileNotFoundError:
            raise RunError(f"run {self.id} is not finished: {path} does not exist") from None
        except (OSError, ValueError) as error:
            raise self.damaged(path, f"cannot be read ({error})") from None
        if not is_manifest(manifest):
            raise self.damaged(path, "is not a run manifest")
        if manifest.get("id") != self.id:
            raise self.damaged(path, f"is the manifest of another run, {manifest.get('id')}")
        if "sha256" in manifest:
            genuine = seal_of(manifest) == manifest["sha256"]
        else:  # of a version that did not seal it
            genuine = manifest["summary"] == self._last_row(manifest)
        if not genuine:
            raise self.damaged(path, "has changed since it was written")
        return dict(manifest)

    @property
    def status(self) -> str:
        """``finished`` or ``failed``."""
        return str(self.manifest["status"])

    @property
    def summary(self) -> dict[str, Any]:
        """The metrics of the last epoch."""
        return dict(self.manifest["summary"])

    @property
    def provenance(self) -> dict[str, Any]:
        """Version, commit, torch, device, seconds and cost in images or tokens."""
        return dict(self.manifest["provenance"])

    @property
    def units(self) -> int:
        """How much work the training was, in the unit of its data (`Run.recipe.data.unit`: images, tokens)."""
        return int(self.provenance.get(self.recipe.data.unit, 0))

    @property
    def left_out(self) -> dict[str, Any]:
        """Files that the training left and that are not here, with size and checksum where they are known."""
        return dict(self.manifest.get("left_out", {}))

    @property
    def is_light(self) -> bool:
        """Whether the run is finished and its weights are not here."""
        return WEIGHTS in self.left_out

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe, proven to be the one this run was made from."""
        return read_recipe(self.directory)

    def history(self) -> list[dict[str, Any]]:
        """The metrics: a row for each time the model was measured, mostly at the end of an epoch.

        What a row says of the training set (``train_loss``) is of the steps of that epoch since the row before.
        """
        return [json.loads(line) for line in self._checked(METRICS).read_text(encoding="utf-8").splitlines()]

    def weights(self) -> dict[str, Tensor]:
        """The final weights, on the CPU."""
        self._refuse_left_out(WEIGHTS, "weights", "weights")
        return self._tensors(WEIGHTS)

    def about_weights(self) -> dict[str, str]:
        """Texts that the weights are of no use without, by name: the tokeniser of a translation model."""
        from safetensors import safe_open

        self._refuse_left_out(WEIGHTS, "weights", "weights")
        with safe_open(self._checked(WEIGHTS), "pt") as file:
            return dict(file.metadata() or {})

    def has_predictions(self, split: str) -> bool:
        """Whether predictions on a split were kept."""
        return predictions_file(split) in self.manifest["files"]

    def has_only_scores(self, split: str) -> bool:
        """Whether predictions on a split were kept without penultimate activations."""
        from safetensors import safe_open

        if not self.has_predictions(split):
            return False
        with safe_open(self.directory / predictions_file(split), "pt") as file:
            return "logits" in file.keys() and set(file.keys()) <= _SCORES  # noqa: SIM118 - no mapping

    def predictions(self, split: str) -> Predictions:
        """Logits, labels and penultimate activations on one split, of a run that kept those."""
        kept = self.kept(split)
        if "logits" in kept and kept.keys() <= _SCORES:
            kept["features"] = kept["logits"].new_empty(len(kept["logits"]), 0)
        try:
            return Predictions(**kept)
        except TypeError:
            raise RunError(
                f"run {self.id} has {', '.join(sorted(kept))} on '{split}', not logits, labels and features of each "
                f"example; read them with Run.kept('{split}')"
            ) from None

    def has_compact(self, split: str) -> bool:
        """Whether there are predictions on a split from which `compact` ones are there or can be made."""
        from safetensors import safe_open

        if not self.has_predictions(split):
            return compact_file(split) in self.manifest["files"]
        with safe_open(self._checked(predictions_file(split), thorough=False), "pt") as file:
            names = set(file.keys())
            if {"codes", "labels", "predicted"} <= names:
                # Of tokens: those of vocabularies that 16 bits cannot number do not fit.
                return bool(file.get_slice("labels").get_dtype() == "U16")
            return {"logits", "labels"} <= names

    def compact(self, split: str) -> CompactPredictions:
        """Of each example of a split the predicted class, its probability and the label's, also of a light run.

        Examples of translations are tokens, those of one sentence after those of another, with correct prefixes.
        """
        if self.has_predictions(split):
            said = self.kept(split)
            if {"logits", "labels"} <= said.keys():
                return CompactPredictions.of(said["logits"].double().numpy(), said["labels"].long().numpy())
            if "codes" in said and (labels := said["labels"].numpy()).dtype == np.uint16:
                codes = np.concatenate((said["predicted"].numpy()[None], said["codes"].numpy()))
                return CompactPredictions(labels, codes)
        if not self.has_compact(split):
            raise RunError(f"run {self.id} has no predictions on '{split}', neither full nor compact")
        path = self._checked(compact_file(split))
        try:
            return CompactPredictions.from_bytes(path.read_bytes())
        except ValueError as error:
            raise self.damaged(path, f"cannot be read ({error})") from None

    def kept(self, split: str) -> dict[str, Tensor]:
        """All that was kept on one split, by name: what that is depends on what the run was trained on."""
        self._refuse_left_out(predictions_file(split), f"predictions on '{split}'", "predictions")
        if not self.has_predictions(split):
            if (
                self.left_out.get(WEIGHTS) == {}
            ):  # from the results of a page, which do not tell what else there was
                raise NotStoredError(
                    f"run {self.id} is light: it came from the results of a page, without predictions on '{split}'. "
                    f"Merge a file made by `softtargets runs pack --with predictions`, or delete the run with "
                    f"`softtargets runs delete {self.id}` and train it again"
                )
            kept = [Path(name).stem for name in self.manifest["files"] if name.startswith("predictions/")]
            raise RunError(
                f"run {self.id} has no predictions on '{split}'; it has: {', '.join(kept) or 'none'}"
            )
        return self._tensors(predictions_file(split))

    def problems(self, thorough: bool = True, of: Recipe | None = None) -> list[str]:
        """What is wrong with the files: missing, of another size or, if thorough, of other content.

        of: the recipe that the run should be of, where that is known: it takes half the time.
        """
        found = []
        try:
            read_recipe(self.directory, of)
        except RunError as error:
            found.append(str(error))
        for name, expected in self.manifest["files"].items():
            if problem := _problem(self.directory / name, expected, thorough):
                found.append(f"{self.directory / name} {problem}")
        return found

    def damaged(self, path: Path, what: str) -> RunError:
        """The error for a file of this run that is not as it was written."""
        return RunError(
            f"{path} {what}; run {self.id} is damaged. Other runs are not affected. Delete it with `softtargets runs "
            f"delete {self.id}` and train it again"
        )

    def _refuse_left_out(self, name: str, what: str, option: str) -> None:
        if name in self.left_out and name not in self.manifest["files"]:
            raise NotStoredError(
                f"run {self.id} is light: its {what} were left out when it was packed. Merge a file made by "
                f"`softtargets runs pack --with {option}`, or delete the run with `softtargets runs delete {self.id}` "
                "and train it again"
            )

    def _last_row(self, manifest: dict[str, Any]) -> Any:
        """The summary as the metrics have it, which a checksum has always guarded."""
        try:
            lines = read_bounded(self.directory / METRICS, MOST_METRICS).splitlines()
            return json.loads(lines[-1]) if lines else {}
        except (OSError, ValueError, RecursionError):
            return manifest["summary"]  # `problems` says what is wrong with the metrics

    def _checked(self, name: str, thorough: bool = True) -> Path:
        path = self.directory / name
        if problem := _problem(path, self.manifest["files"].get(name), thorough):
            raise self.damaged(path, problem)
        return path

    def _tensors(self, name: str) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self._checked(name)
        try:
            return load_file(path)
        except (SafetensorError, OSError) as error:
            raise self.damaged(path, f"cannot be read ({error})") from None


def _problem(path: Path, expected: dict[str, Any] | None, thorough: bool) -> str:
    """What is wrong with a file of a run, in words that follow its name; empty when nothing is."""
    if expected is None:
        return "is not listed in the manifest"
    try:
        size = path.stat().st_size
    except OSError:
        return "is missing"
    if size != expected["bytes"]:
        return f"has {size} bytes, not {expected['bytes']}"
    try:
        same = not thorough or digest(path) == expected["sha256"]
    except StorageError as error:
        return f"cannot be read ({error})"
    return "" if same else "has changed since it was written"


def sealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the checksum of all else that is in it, so that nobody changes a number by hand unnoticed."""
    plain = json.loads(json.dumps(manifest))  # as it will be read again
    return {**plain, "sha256": seal_of(plain)}


def seal_of(manifest: dict[str, Any]) -> str:
    """The checksum of all that a manifest says besides."""
    plain = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def is_manifest(tree: Any) -> bool:
    """Whether this could be the manifest of a run, whoever wrote it."""
    if not isinstance(tree, dict) or tree.get("status") not in ("finished", "failed"):
        return False
    parts = [*(tree.get(key) for key in ("summary", "provenance", "files")), tree.get("left_out", {})]
    if not all(isinstance(part, dict) for part in parts):
        return False
    provenance = tree["provenance"]
    if not isinstance(provenance.get("seconds", 0.0), int | float):
        return False
    if not isinstance(provenance.get("finished", ""), str):
        return False
    return all(
        isinstance(file, dict) and {"bytes", "sha256"} <= file.keys() for file in tree["files"].values()
    )


def read_recipe(directory: Path, expected: Recipe | None = None) -> Recipe:
    """The recipe in a run directory; refused when its hash is not the directory's name.

    One that says, letter by letter, what the expected one does need not be made of it once more.
    """
    path = directory / RECIPE
    try:
        tree = read_json(path)
        same = expected is not None and json.dumps(tree) == json.dumps(expected.to_dict())
        recipe = expected if expected is not None and same else Recipe.from_dict(tree)
    except OSError as error:
        raise RunError(f"{directory} is not a run: cannot read {path.name} ({error.strerror})") from None
    except (ValueError, RecipeError) as error:
        raise RunError(f"{path} is damaged or was edited by hand: {error}") from None
    if recipe.id != directory.name:
        raise RunError(
            f"{path} was edited by hand: it now describes run {recipe.id}, not {directory.name}. "
            "Undo the edit; to train the changed recipe, copy it elsewhere and use `softtargets train`"
        )
    return recipe
