"""Penultimate activations, labels and the last layer of any model, from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from softtargets.predictions.array import BLOCK_BYTES, FileArray, Flat
from softtargets.predictions.choosing import choose_labels, named, unclear, wanted
from softtargets.predictions.failing import PredictionFileError
from softtargets.predictions.kinds import Judgement, checked
from softtargets.predictions.labels import LabelReader
from softtargets.predictions.opening import Arrays, open_arrays
from softtargets.predictions.table import read_together

ACTIVATIONS = (
    *("activations", "activation", "features", "feature", "penultimate", "embeddings", "embedding"),
    *("representations", "hidden", "hidden_states", "x"),
)
WEIGHTS = (
    *("weights", "weight", "templates", "head_weight", "classifier_weight", "fc_weight", "linear_weight"),
    *("output_weight", "last_layer_weight", "lm_head_weight", "logits_weight", "w"),
)
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
    ) -> None:
        self.path = activations.path
        self.weights, self.bias = weights, bias
        self.width = activations.shape[-1]
        self.classes = weights.shape[0]
        self._activations = activations.merged()
        self._labels = labels if len(labels.shape) == 1 else Flat(labels)
        self._reader = LabelReader(self._labels, self._activations, self.classes)
        self._ignored = ignore_index
        self.examples = self._activations.shape[0] if ignore_index is None else self._count(ignore_index)
        self.source = source

    def chunks(self, rows: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Activations (n, D) and labels (n,) as int64, `rows` at a time, checked; as often as wanted.

        Rows without a label (`ignore_index`) are left out, so that a chunk may have fewer.
        """
        if rows is not None and rows < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
        step = rows or max(1, min(1 << 16, BLOCK_BYTES // self._activations.row_bytes))
        start = 0
        for found, given in read_together(self._activations, self._labels, step):
            number = torch.arange(start, start + len(found))
            start += len(found)
            labels, kept = self._reader.read(given, self._placer(number), self._ignored)
            found = found if found.is_floating_point() else found.double()
            if not bool(kept.all()):
                number, found, labels = number[kept], found[kept], labels[kept]
            if len(labels):
                yield checked(found, Judgement("logits", ""), self.path, self._placer(number)), labels

    def _placer(self, rows: Tensor) -> Callable[[int], str]:
        return lambda row: self._activations.place(int(rows[row]))

    def _count(self, ignored: int) -> int:
        count = sum(int(block.ne(ignored).sum()) for block in self._labels.blocks(1 << 16))
        if count == 0:
            raise PredictionFileError(
                self.path, f"has no example left: all labels are {ignored}", "use another ignore_index"
            )
        return count

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
        raise PredictionFileError(
            arrays.path,
            "is a table with one number in each cell, and activations are not read from those",
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
        raise PredictionFileError(
            found.path,
            f"has activations '{found.name}' {found.shape} that do not match the labels '{label.name}' {label.shape}",
            "there must be one label for each example",
        )
    source = f"activations '{found.name}' of {arrays.path.name}, labels '{label.name}', {told}"
    return Activations(found, label, weight, bias, source, ignore_index)


def _activations(arrays: Arrays, name: str | None) -> FileArray:
    if name is not None:
        chosen = [wanted(arrays, name, "activations")]
    else:
        chosen = named([one for one, array in arrays.items() if len(array.shape) >= 2], ACTIVATIONS)
    if len(chosen) != 1:
        what = "several arrays" if chosen else "no array (examples, numbers)"
        raise unclear(arrays, f"has {what} that could be activations", "activations_name")
    found = arrays[chosen[0]]
    if len(found.shape) < 2 or 0 in found.shape or not found.is_number:
        raise PredictionFileError(
            arrays.path,
            f"has activations {found.describe()}",
            "they must be numbers (examples, numbers), at least one of each",
        )
    return found


def _last_layer(
    arrays: Arrays, name: str | None, width: int, not_it: str | None
) -> tuple[Tensor, Tensor | None, str]:
    if name is not None:
        chosen = [wanted(arrays, name, "weights")]
    else:
        flat = [
            one
            for one, array in arrays.items()
            if len(array.shape) == 2 and array.is_floating and width in array.shape and one != not_it
        ]
        chosen = named(flat, WEIGHTS)
        if len(chosen) > 1:
            # Every layer of a model is called something.weight: the usual names of last ones come first.
            chosen = named(flat, [one for one in WEIGHTS if one not in ("weight", "weights", "w")]) or chosen
    if len(chosen) != 1:
        what = "several arrays" if chosen else "no array"
        raise unclear(
            arrays,
            f"has {what} that could be the last layer of {width} inputs",
            "weights_name, or give the file that has it with weights",
        )
    array = arrays[chosen[0]]
    if len(array.shape) != 2 or width not in array.shape or not array.is_floating:
        raise PredictionFileError(
            arrays.path,
            f"has weights {array.describe()} that do not fit activations of {width} numbers",
            f"they must be floating-point numbers (classes, {width})",
        )
    weight = array.load(WEIGHT_BYTES)
    turned = array.shape[1] != width
    weight = weight.T.contiguous() if turned else weight
    _refuse_infinite(arrays, array.name, weight)
    bias = _bias(arrays, array.name, weight.shape[0])
    return weight, bias, f"weights '{array.name}'" + (", transposed" if turned else "")


def _bias(arrays: Arrays, weight: str, classes: int) -> Tensor | None:
    """The bias that goes with a weight: ``fc.weight`` and ``fc.bias``."""
    for one in (weight.replace("weights", "bias").replace("weight", "bias"), "bias", "b"):
        if one in arrays and one != weight and arrays[one].shape == (classes,) and arrays[one].is_floating:
            found = arrays[one].load(WEIGHT_BYTES)
            _refuse_infinite(arrays, one, found)
            return found
    return None


def _refuse_infinite(arrays: Arrays, name: str, values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise PredictionFileError(
            arrays.path,
            f"has numbers in '{name}' that are not finite",
            "the model has diverged, or it is damaged",
        )
