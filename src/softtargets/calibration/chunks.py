"""Logits and labels a piece at a time: what every fit reads, from memory or from a file, as often as it needs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import (
    ArrayLike,
    as_floating,
    as_tensor,
    refuse_fault,
    single_or_double,
    sum_tolerance,
)
from softtargets.calibration.scores import Piece, as_scores, check_shapes

Reader = Callable[[], Iterable[Piece]]
WeightedPiece = tuple[Tensor, Tensor, Tensor | None]


class NoExamples(ValueError):
    """There is nothing to measure."""


@dataclass(eq=False)
class Chunks:
    """Pieces (n, K) of logits with their labels (n,); every iteration starts from the beginning.

    `read` is called for every pass and gives pieces of any size, as a function that opens a file does. What comes
    out is checked, has no rows with the label `ignore_index` (they may hold anything), is in single precision or
    double, and is cut up into pieces that fit a cache. With `from_logits=False` what is read are probabilities, and
    their logarithms come out, with that of `floor` for 0 (see `logits_from_probabilities`). Pass `checked` only if
    every row has been checked already. `weights` (rows,) say how often each row counts; `weighted` gives them with
    the pieces.

    >>> chunks = Chunks(lambda: [(torch.eye(2), torch.tensor([0, -1])), (torch.ones(1, 2), torch.tensor([1]))], -1)
    >>> [(z.tolist(), y.tolist()) for z, y in chunks]
    [([[1.0, 0.0]], [0]), ([[1.0, 1.0]], [1])]
    """

    read: Reader
    ignore_index: int | None = None
    from_logits: bool = True
    checked: bool = field(default=False, kw_only=True)
    floor: float | None = field(default=None, kw_only=True)
    weights: Tensor | None = field(default=None, kw_only=True)
    _rows: int | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Piece]:
        return ((z, y) for z, y, _ in self.weighted())

    def weighted(self) -> Iterator[WeightedPiece]:
        """The same pieces with the weights of their rows (n,), None where all count once."""
        rows = counted = 0
        classes = None
        for scores, labels in self.read():
            if scores.ndim != 2 or len(labels) != len(scores):
                raise ValueError(
                    f"each piece must be (rows, classes) and its labels (rows,), not {tuple(scores.shape)} "
                    f"and {tuple(labels.shape)}"
                )
            classes = classes or scores.shape[1]
            if scores.shape[1] != classes:
                raise ValueError(
                    f"row {rows} has {scores.shape[1]} classes, but the rows before have {classes}"
                )
            for z, y, w in self._pieces(scores, labels, rows) if len(scores) else ():
                counted += len(z)
                yield z, y, w
            rows += len(scores)
        if self._rows not in (None, rows):
            raise ValueError(
                f"there were {self._rows} rows when the data was first read, and now there are {rows}; pass a "
                "function that reads from the beginning each time it is called"
            )
        self._rows = rows
        if counted == 0:
            ignored = f": all {rows} labels are {self.ignore_index}, which is ignored" if rows else ""
            raise NoExamples(f"there are no examples{ignored}")

    def _pieces(self, scores: Tensor, labels: Tensor, first: int) -> Iterator[WeightedPiece]:
        part = as_scores(
            scores,
            labels,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
            checked=self.checked,
            first=first,
        )
        for start in part.starts:
            values, y = part.checked_piece(start)
            z = single_or_double(values) if self.from_logits else _log(values, self.floor)
            yield z, y, None if self.weights is None else self.weights[part.places(start, first)].to(z.device)


def as_chunks(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    *,
    ignore_index: int | None = None,
    from_logits: bool = True,
    weights: ArrayLike | None = None,
) -> Chunks:
    """What a fit is given, as `Chunks`: arrays of logits (..., K) and labels (...), or a function that reads pieces.

    Arrays are not copied as a whole, be they on a device or mapped from a file. `weights` (...) are how often each
    example counts, finite and not negative; they are for arrays only.

    >>> chunks = as_chunks(np.zeros((1, 3, 4)), np.array([[3, -100, 1]]), ignore_index=-100)
    >>> [(tuple(z.shape), y.tolist()) for z, y in chunks]
    [((2, 4), [3, 1])]
    """
    if not isinstance(logits, Chunks) and not callable(logits):
        if labels is None:
            raise ValueError(
                "labels are missing; they can only be left out if logits is a function that reads pieces of logits "
                "and labels"
            )
        arrays = [as_tensor(v) if isinstance(v, Tensor) else np.asarray(v) for v in (logits, labels)]
        check_shapes(*arrays, from_logits=from_logits)
        return Chunks(
            lambda: _flat(*arrays), ignore_index, from_logits, weights=_as_weights(weights, arrays[1].shape)
        )
    if weights is not None:
        raise ValueError(
            "weights can only be passed with arrays of logits and labels; give Chunks their weights when you make "
            "them"
        )
    if labels is not None:
        raise ValueError("a function or Chunks reads its own labels; do not pass labels too")
    if not isinstance(logits, Chunks):
        return Chunks(logits, ignore_index, from_logits)
    if ignore_index is not None or not from_logits:
        raise ValueError("ignore_index and from_logits are set when Chunks are made; do not pass them again")
    return logits


def _as_weights(weights: ArrayLike | None, shape: tuple[int, ...]) -> Tensor | None:
    """Weights of all rows in double precision, on the CPU."""
    if weights is None:
        return None
    found = as_tensor(weights).detach().double().cpu()
    if tuple(found.shape) != tuple(shape):
        raise ValueError(f"there must be one weight for each label, {tuple(shape)}, not {tuple(found.shape)}")
    if not bool(torch.isfinite(found).all()) or bool((found < 0).any()) or not bool((found > 0).any()):
        raise ValueError("weights must be finite numbers of at least 0, and at least one must be above 0")
    return found.reshape(-1)


def _flat(scores: Any, labels: Any) -> Iterator[Piece]:
    """Rows of arrays of any leading shape, without a copy of the whole: only what lies in one block is reshaped."""
    if scores.ndim > 2 and not (
        scores.is_contiguous() if isinstance(scores, Tensor) else scores.flags.c_contiguous
    ):
        for one, some in zip(scores, labels, strict=True):
            yield from _flat(one, some)
    else:
        yield scores.reshape(-1, scores.shape[-1]), labels.reshape(-1)


def fold_of(start: int, count: int, folds: int, seed: int = 0) -> Tensor:
    """The fold, 0 to folds - 1, of each of the rows start to start + count: a hash of its place and the seed.

    By the mixing function of SplitMix64 (Steele, Lea & Flood 2014). How many rows there are and how they are read does
    not matter.

    >>> fold_of(0, 8, folds=3).tolist() == fold_of(0, 5, folds=3).tolist() + fold_of(5, 3, folds=3).tolist()
    True
    """
    with np.errstate(over="ignore"):
        key = _mixed(np.array([seed % (1 << 64)], dtype=np.uint64))
        hashed = _mixed(np.arange(start, start + count, dtype=np.uint64) + key)
    return torch.from_numpy((hashed % np.uint64(folds)).astype(np.int64))


def in_fold(chunks: Chunks, fold: int, folds: int, seed: int = 0, *, held_out: bool) -> Chunks:
    """The rows of one fold (`held_out`), or those of all others. Ignored rows have no place in the count."""

    def read() -> Iterator[Piece]:
        start = 0
        for z, y in chunks:
            chosen = (fold_of(start, len(z), folds, seed) == fold) == held_out
            start += len(z)
            rows = chosen.nonzero().flatten().to(z.device)
            yield z[rows], y[rows]

    return Chunks(read, checked=True)  # by `chunks`


def logits_from_probabilities(
    probabilities: ArrayLike, *, floor: float | None = None, checked: bool = False
) -> Tensor:
    """log p as logits: softmax(log p) = p, so that temperature scaling makes p^(1/T) / sum of p^(1/T) of it.

    Where p is exactly 0, the logarithm is that of `floor`. `zero_floor` finds one that fits the labels; with it, a
    model that often says 0, such as a forest, can be scaled. Without a floor it is the smallest positive number in
    this precision: -16.6 for half, -92.2 for bfloat16, -103.3 for single and -744.4 for double. So a zero stays
    below everything that is not zero, but a few labels with probability 0 then decide every fit. Any leading shape;
    half precision comes out in single. Rows that were `checked` are not looked at again.

    >>> logits_from_probabilities(torch.tensor([[1.0, 0.0]]))
    tensor([[   0.0000, -103.2789]])
    >>> logits_from_probabilities(torch.tensor([[1.0, 0.0]]), floor=1e-4)
    tensor([[ 0.0000, -9.2103]])
    """
    if floor is not None and not 0 < floor < 1:
        raise ValueError(f"floor must lie between 0 and 1, not {floor}")
    p = as_floating(probabilities, "probabilities").detach()
    if p.ndim < 1 or 0 in p.shape:
        raise ValueError(f"probabilities must be (examples, classes), not {tuple(p.shape)}")
    if not checked:
        refuse_fault(p.reshape(-1, p.shape[-1]), sum_tolerance(p.dtype), "probabilities")
    return _log(p, floor)


def _log(p: Tensor, floor: float | None = None) -> Tensor:
    precision = torch.finfo(p.dtype)
    # A sum, since the smallest number itself may be read as 0.
    lowest = math.log(precision.tiny) + math.log(precision.eps) if floor is None else math.log(floor)
    p = single_or_double(p)
    return torch.where(p > 0, p.log(), lowest)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
