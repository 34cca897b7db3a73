"""A finished run, read from its directory. Nothing here writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.exceptions import RecipeError, RunError
from softtargets.recipes import Recipe
from softtargets.storage import fingerprint

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST = "run.json"
RECIPE = "recipe.json"
METRICS = "metrics.jsonl"
WEIGHTS = "weights.safetensors"
CHECKPOINT = "checkpoint.safetensors"
LOCK = "lock"


def predictions_file(split: str) -> str:
    """Where the predictions on a split lie inside a run directory."""
    return f"predictions/{split}.safetensors"


@dataclass(frozen=True)
class Predictions:
    """What a run's net says about one split, example by example, in the order of the dataset."""

    logits: Tensor
    labels: Tensor
    features: Tensor


@dataclass(frozen=True)
class Run:
    """A finished (or failed) run on disk.

    Every read is checked against the manifest, so a truncated or edited file is an error, not a number.
    """

    directory: Path

    @property
    def id(self) -> str:
        """The recipe's hash, which is also the directory's name."""
        return self.directory.name

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The run's own account of itself: status, summary, files, provenance."""
        path = self.directory / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            manifest["status"], manifest["files"], manifest["provenance"]
        except FileNotFoundError:
            raise RunError(f"run {self.id} is not finished: {path} does not exist") from None
        except (ValueError, KeyError, TypeError):
            raise self.damaged(path, "is not a run manifest") from None
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
        """Version, commit, torch, device, seconds and cost in images."""
        return dict(self.manifest["provenance"])

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe, proven to be the one this run was made from."""
        return read_recipe(self.directory)

    def history(self) -> list[dict[str, Any]]:
        """The metrics, one row per epoch."""
        return [json.loads(line) for line in self._checked(METRICS).read_text().splitlines()]

    def weights(self) -> dict[str, Tensor]:
        """The final weights, on the CPU."""
        return self._tensors(WEIGHTS)

    def has_predictions(self, split: str) -> bool:
        """Whether predictions on a split were kept."""
        return predictions_file(split) in self.manifest["files"]

    def predictions(self, split: str) -> Predictions:
        """Logits, labels and penultimate activations on one split."""
        if not self.has_predictions(split):
            kept = [Path(name).stem for name in self.manifest["files"] if name.startswith("predictions/")]
            raise RunError(
                f"run {self.id} kept no predictions on '{split}'; kept: {', '.join(kept) or 'none'}"
            )
        return Predictions(**self._tensors(predictions_file(split)))

    def problems(self, thorough: bool = True) -> list[str]:
        """What is wrong with the files: missing, of another size or, if thorough, of other content."""
        found = []
        try:
            read_recipe(self.directory)
        except RunError as error:
            found.append(str(error))
        for name, expected in self.manifest["files"].items():
            path = self.directory / name
            if not path.is_file():
                found.append(f"{path} is missing")
            elif path.stat().st_size != expected["bytes"]:
                found.append(f"{path} has {path.stat().st_size} bytes, not {expected['bytes']}")
            elif thorough and fingerprint(path)["sha256"] != expected["sha256"]:
                found.append(f"{path} has other content than when it was written")
        return found

    def damaged(self, path: Path, what: str) -> RunError:
        """The error for a file of this run that is not as it was written."""
        return RunError(
            f"{path} {what}; run {self.id} is damaged. Other runs are not affected. "
            f"Delete it with `softtargets runs delete {self.id}` and run again to make it anew"
        )

    def _checked(self, name: str) -> Path:
        path = self.directory / name
        expected = self.manifest["files"][name]["bytes"]
        try:
            found = path.stat().st_size
        except OSError:
            raise self.damaged(path, "is missing") from None
        if found != expected:
            raise self.damaged(path, f"has {found} bytes, not {expected}")
        return path

    def _tensors(self, name: str) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self._checked(name)
        try:
            return load_file(path)
        except (SafetensorError, OSError) as error:
            raise self.damaged(path, f"cannot be read ({error})") from None


def read_recipe(directory: Path) -> Recipe:
    """The recipe in a run directory; refused when its hash is not the directory's name."""
    path = directory / RECIPE
    try:
        recipe = Recipe.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise RunError(f"{directory} is not a run: {path} does not exist") from None
    except (ValueError, RecipeError) as error:
        raise RunError(f"{path} is damaged or was edited by hand: {error}") from None
    if recipe.id != directory.name:
        raise RunError(
            f"{path} was edited by hand: it now describes run {recipe.id}, not {directory.name}. "
            "Undo the edit; to train the changed recipe, copy it elsewhere and use `softtargets train`"
        )
    return recipe
