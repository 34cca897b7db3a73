"""The one object that may write a run: checkpoints while it trains, then the finished files."""

from __future__ import annotations

import json
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.exceptions import RunError
from softtargets.recipes import Recipe
from softtargets.runs.measured import forget_measures
from softtargets.runs.run import (
    CHECKPOINT,
    MANIFEST,
    METRICS,
    RECIPE,
    WEIGHTS,
    Run,
    compact_file,
    predictions_file,
    read_recipe,
    sealed,
)
from softtargets.storage import (
    Lock,
    fingerprint,
    make_directory,
    sweep_temporaries,
    write_atomically,
    write_json,
)

if TYPE_CHECKING:
    from torch import Tensor

FORMAT = 1  # of the manifest
CHECKPOINT_FORMAT = 2  # 1 had no checksum

Contents = Mapping[
    str, Callable[[], bytes]
]  # of files, by their names in the run directory; read one at a time


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to go on as if nothing had happened: tensors, and plain JSON beside them."""

    tensors: dict[str, Tensor]
    progress: dict[str, Any]


class RunWriter:
    """Exclusive right to write one run; a context manager that gives the right back.

    While training there is one file, the checkpoint, replaced in one step. At the end the parts are written
    and the manifest last: a run without a manifest is not finished, whatever else lies there.
    """

    def __init__(self, directory: Path, recipe: Recipe, lock: Lock) -> None:
        self.recipe = recipe
        self.run = Run(directory)
        self._directory = directory
        self._lock = lock
        sweep_temporaries(directory)
        if (directory / RECIPE).exists():
            read_recipe(directory, recipe)  # refuses an edited one before anything is trained on it
        else:
            write_json(directory / RECIPE, recipe.to_dict())

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give the right back; once more does no harm."""
        self._lock.release()

    @property
    def finished(self) -> bool:
        """Whether another process finished this run before we got the lock."""
        return (self._directory / MANIFEST).exists()

    @property
    def light(self) -> Run | None:
        """The light run that is here, whose place a training of the same recipe takes at its end."""
        run = Run(self._directory)
        return run if self.finished and run.is_light else None

    def restore(self) -> Checkpoint | None:
        """The last checkpoint, or None when the run has not begun."""
        from safetensors import SafetensorError, safe_open

        path = self._directory / CHECKPOINT
        if not path.exists():
            return None
        try:
            if not path.is_file():
                raise ValueError("it is a directory, a pipe or a device")
            with safe_open(path, framework="pt") as file:
                about = file.metadata()
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if about["format"] == "1":
                # Refusing it would throw away what may be days of training, for a fault it most likely has not.
                warnings.warn(
                    f"{path} was written by a version without checksums; it is resumed unchecked",
                    stacklevel=2,
                )
            elif about["format"] != str(CHECKPOINT_FORMAT):
                raise ValueError(f"its format is {about['format']}, not {CHECKPOINT_FORMAT}")
            elif about["crc32"] != _checksum(tensors, about["progress"]):
                raise ValueError("it has changed since it was written")
            return Checkpoint(tensors, json.loads(about["progress"]))
        except (SafetensorError, OSError, KeyError, ValueError, TypeError, RecursionError) as error:
            raise RunError(
                f"{path} cannot be read ({error}); delete it with `softtargets runs delete {self.run.id}` and train "
                "again to start this run from scratch"
            ) from None

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Replace the last checkpoint by this one."""
        progress = json.dumps(checkpoint.progress)
        plain = _on_cpu(checkpoint.tensors)
        checksum = _checksum(plain, progress)
        about = {"format": str(CHECKPOINT_FORMAT), "progress": progress, "crc32": checksum}
        self._write_tensors(CHECKPOINT, plain, about)

    def finish(
        self,
        weights: Mapping[str, Tensor],
        predictions: Mapping[str, Mapping[str, Tensor]],
        history: list[dict[str, Any]],
        provenance: Mapping[str, Any],
        about: Mapping[str, str] | None = None,
    ) -> Run:
        """Write everything, then the manifest, then drop the checkpoint.

        about: texts that the weights are of no use without, such as a tokeniser; they are in the same file.
        """
        self._write_tensors(WEIGHTS, weights, dict(about) if about else None)
        for split, tensors in predictions.items():
            self._write_tensors(predictions_file(split), tensors)
        return self._conclude("finished", history, provenance, [WEIGHTS, *map(predictions_file, predictions)])

    def fail(self, reason: str, history: list[dict[str, Any]], provenance: Mapping[str, Any]) -> Run:
        """Record that this training cannot succeed (it diverged), so that it is not tried again.

        A light run that is here stays: elsewhere it was finished.
        """
        if (light := self.light) is not None:
            (self._directory / CHECKPOINT).unlink(missing_ok=True)
            return light
        return self._conclude("failed", history, {**provenance, "reason": reason}, [])

    def take_in(
        self,
        status: str,
        history: list[dict[str, Any]],
        provenance: Mapping[str, Any],
        files: Contents,
        left_out: Mapping[str, Any],
    ) -> Run:
        """Write a run that was trained elsewhere, without the files that were left out there.

        A checkpoint that is here stays with a light run: if its weights are needed, its training goes on from there.
        """
        self._write_files(files)
        return self._conclude(status, history, provenance, list(files), left_out)

    def add_files(self, files: Contents) -> Run:
        """Add files to a concluded run that lacks them."""
        self._write_files(files)
        return self._list(files)

    def put_checkpoint(self, content: bytes) -> None:
        """A checkpoint that was written elsewhere, in the place of the one that is here."""
        write_atomically(self._directory / CHECKPOINT, content)

    def add_predictions(self, split: str, tensors: Mapping[str, Tensor]) -> Run:
        """Add the predictions on one more split to a finished run."""
        name = predictions_file(split)
        self._write_tensors(name, tensors)
        return self._list([name])

    def _list(self, names: Collection[str]) -> Run:
        """Put files into the manifest of a concluded run."""
        manifest = dict(Run(self._directory).manifest)
        manifest["files"] = {**manifest["files"], **self._fingerprints(names)}
        if left_out := {
            name: told for name, told in manifest.pop("left_out", {}).items() if name not in names
        }:
            manifest["left_out"] = left_out
        write_json(self._directory / MANIFEST, sealed(manifest))
        return Run(self._directory)

    def _conclude(
        self,
        status: str,
        history: list[dict[str, Any]],
        provenance: Mapping[str, Any],
        files: list[str],
        left_out: Mapping[str, Any] | None = None,
    ) -> Run:
        write_json(self._directory / RECIPE, self.recipe.to_dict())  # somebody may have deleted it meanwhile
        metrics = metrics_content(history)
        staying = self._make_way(metrics, files)
        write_atomically(self._directory / METRICS, metrics)
        manifest = {
            "format": FORMAT,
            "id": self.run.id,
            "status": status,
            "summary": history[-1] if history else {},
            "provenance": dict(provenance),
            "files": self._fingerprints([RECIPE, METRICS, *files, *staying]),
        }
        if left_out:
            manifest["left_out"] = dict(left_out)
        write_json(self._directory / MANIFEST, sealed(manifest))
        if WEIGHTS not in (left_out or {}):
            (self._directory / CHECKPOINT).unlink(missing_ok=True)
        return Run(self._directory)

    def _make_way(self, metrics: bytes, files: list[str]) -> list[str]:
        """A light run that was trained again ends here. What is still true of it stays: its files are returned.

        With other numbers than before, its manifest goes first: a crash leaves a checkpoint, never a mixture of two.
        """
        manifest = self._directory / MANIFEST
        if not manifest.exists():
            return []
        there = sorted(path.stem for path in (self._directory / compact_file("")).parent.glob("*.npz"))
        if (self._directory / METRICS).exists() and (self._directory / METRICS).read_bytes() == metrics:
            return [compact_file(split) for split in there if predictions_file(split) not in files]
        manifest.unlink()
        forget_measures(self._directory)
        for split in there:
            (self._directory / compact_file(split)).unlink()
        return []

    def _fingerprints(self, names: Iterable[str]) -> dict[str, Any]:
        return {name: fingerprint(self._directory / name) for name in names}

    def _write_files(self, files: Contents) -> None:
        for name, read in files.items():
            make_directory((self._directory / name).parent)
            write_atomically(self._directory / name, read())

    def _write_tensors(
        self, name: str, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None
    ) -> None:
        from safetensors.torch import save

        path = self._directory / name
        make_directory(path.parent)
        write_atomically(path, save(_on_cpu(tensors), metadata))


def metrics_content(history: Iterable[Mapping[str, Any]]) -> bytes:
    """The file of metrics: one line of JSON for each time the model was measured."""
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in history).encode()


def _on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}


def _checksum(tensors: Mapping[str, Tensor], progress: str) -> str:
    """Of all that a checkpoint says; CRC-32, against damage and edits by hand: three times as fast as SHA-256."""
    import torch

    found = zlib.crc32(progress.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        found = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), found)
        found = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, found)
    return f"{found:08x}"
