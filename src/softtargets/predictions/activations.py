"""Penultimate activations, labels and the last layer of any model, from files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from torch import Tensor

from softtargets.arrays import find_fault
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import FoundFile, PredictionFileError
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.guess import choose_labels, named, only, wanted
from softtargets.predictions.labels import LabelledRows

ACTIVATIONS = (
    *("activations", "activation", "features", "feature", "penultimate", "embeddings", "embedding"),
    *("representations", "hidden", "hidden_states", "x"),
)
LAST_WEIGHTS = (
    *("templates", "head_weight", "classifier_weight", "fc_weight", "linear_weight", "output_weight"),
    *("last_layer_weight", "lm_head_weight", "logits_weight"),
)
WEIGHTS = ("weights", "weight", *LAST_WEIGHTS, "w")
WEIGHT_BYTES = 1 << 31  # the last layer is the only thing that is loaded

PathLike = str | os.PathLike[str]


class Activations:
    """Activations of examples and the layer that scores them; made by `open_activations`.

    A logit is the product of `weights` (K, D) with an example's activations (D,), plus `bias` (K,) where there is one.
    `source` says which arrays were used.
    """

    def __init__(
        self,
        activations: FileArray,
        labels: FileArray,
        weights: Tensor,
        bias: Tensor | None,
        source: str,
        ignore_index: int | None = None,
        files: Sequence[FoundFile] = (),
    ) -> None:
        self.path = activations.path
        self.weights, self.bias, self.source = weights, bias, source
        self.width = activations.shape[-1]
        self.classes = weights.shape[0]
        self._rows = LabelledRows(activations, labels, self.classes, ignore_index, files=files)
        self.examples = self._rows.count()

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Activations (n, D) and labels (n,) as int64, `rows` at a time, checked; as often as wanted.

        Rows without a label (`ignore_index`) are left out, so that a chunk may have fewer.
        """
        for found, labels, place, _ in self._rows.blocks(rows):
            if fault := find_fault(found, None):
                raise PredictionFileError(
                    self.path,
                    f"has {fault.value} in {place(fault.row)}, column {fault.column}",
                    "activations must be finite numbers: find out why the model gave this value, or leave the row "
                    "out",
                )
            yield found, labels

    def __repr__(self) -> str:
        return f"Activations({self.examples} examples of {self.width} numbers, {self.classes} classes, {self.source})"


def open_activations(
    path: PathLike,
    *,
    weights: PathLike | None = None,
    labels: PathLike | None = None,
    activations_name: str | None = None,
    weights_name: str | None = None,
    labels_name: str | None = None,
    ignore_index: int | None = None,
) -> Activations:
    """Open activations (N, D) with labels (N,) and the weights (K, D) of the last layer.

    Tokens may be (sentences, positions, D) with labels (sentences, positions); rows labelled `ignore_index`, such as
    padding, are left out and may hold anything.

    Weights and labels are in the same file unless other files are given; `weights` may be the state of a whole model.
    Arrays are found by their usual names (activations, features, ...; head.weight, classifier.weight, fc.weight, ...);
    otherwise say which. Weights of shape (D, K), as Keras has them, are transposed.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     arrays = dict(features=np.ones((4, 3)), labels=np.array([0, 1, 1, 0]), weights=np.eye(2, 3))
    ...     np.savez(f"{directory}/a.npz", **arrays)
    ...     found = open_activations(f"{directory}/a.npz")
    ...     ((activations, labels),) = found.chunks()
    >>> found.examples, found.width, found.classes, (activations @ found.weights.T)[0].tolist()
    (4, 3, 2, [1.0, 1.0])
    """
    arrays = open_arrays(path)
    if arrays.table is not None and not any(len(array.shape) >= 2 for array in arrays.values()):
        raise arrays.refused(
            "is a table with one number per cell, which activations cannot be read from",
            "save them as .npz or .safetensors",
        )
    found = _activations(arrays, activations_name)
    width = found.shape[-1]
    last = open_arrays(weights) if weights is not None else arrays
    weight, bias, told = _last_layer(last, weights_name, width, found.name if last is arrays else None)
    other = open_arrays(labels) if labels is not None else None
    # Activations stand where scores do when labels are looked for: one label for each row.
    label = choose_labels(other or arrays, labels_name, None if other is not None else found)
    if label.shape != found.shape[:-1]:
        raise found.refused(
            f"has activations '{found.name}' {found.shape} that do not match the labels '{label.name}' {label.shape}",
            "there must be one label for each example",
        )
    source = f"activations '{found.name}' of {arrays.path.name}, labels '{label.name}', {told}"
    files = [one.file for one in (arrays, last, other) if one is not None]
    return Activations(found, label, weight, bias, source, ignore_index, files)


def _activations(arrays: Arrays, name: str | None) -> FileArray:
    if name is None:
        wide = [one for one, array in arrays.items() if len(array.shape) >= 2]
        fitting = named(wide, ACTIVATIONS)
        name = only(arrays, fitting, "activations", "activations_name", none="no array (examples, numbers)")
    found = arrays[wanted(arrays, name, "activations")]
    if len(found.shape) < 2 or 0 in found.shape or not found.is_number:
        raise found.refused(
            f"has activations {found.describe()}",
            "they must be numbers (examples, dimensions), at least one of each",
        )
    return found


def _last_layer(
    arrays: Arrays, name: str | None, width: int, not_it: str | None
) -> tuple[Tensor, Tensor | None, str]:
    def fits(array: FileArray) -> bool:
        return len(array.shape) == 2 and array.is_floating and width in array.shape

    if name is None:
        flat = [one for one, array in arrays.items() if fits(array) and one != not_it]
        # Every layer of a model is called something.weight: the usual names of last ones come first.
        found = named(flat, WEIGHTS)
        found = found if len(found) < 2 else named(flat, LAST_WEIGHTS) or found
        option = "weights_name, or give the file that has it with weights"
        name = only(arrays, found, f"the last layer of {width} inputs", option)
    array = arrays[wanted(arrays, name, "weights")]
    if not fits(array):
        raise array.refused(
            f"has weights {array.describe()} that do not fit activations of {width} numbers",
            f"they must be floating-point numbers (classes, {width})",
        )
    turned = array.shape[1] != width
    weight = _loaded(array)
    weight = weight.T.contiguous() if turned else weight
    bias = _bias(arrays, array.name, weight.shape[0])
    return weight, bias, f"weights '{array.name}'" + (", transposed" if turned else "")


def _bias(arrays: Arrays, weight: str, classes: int) -> Tensor | None:
    """The bias that goes with a weight: ``fc.weight`` and ``fc.bias``."""
    for one in (weight.replace("weights", "bias").replace("weight", "bias"), "bias", "b"):
        if one in arrays and one != weight and arrays[one].shape == (classes,) and arrays[one].is_floating:
            return _loaded(arrays[one])
    return None


def _loaded(array: FileArray) -> Tensor:
    found = array.load(WEIGHT_BYTES)
    if find_fault(found.reshape(1, -1), None):
        raise array.refused(
            f"has numbers in '{array.name}' that are not finite",
            "the model has diverged, or the file is damaged",
        )
    return found
