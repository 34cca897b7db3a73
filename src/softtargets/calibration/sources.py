"""Logits and labels a piece at a time: what every fit reads, from memory or from a file, as often as it needs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.arrays.checking import SUM_TOLERANCE

Piece = tuple[Tensor, Tensor]
Reader = Callable[[], Iterable[Piece]]

PIECE = (
    1 << 18
)  # numbers in a piece: 1 MB in single precision, which stays in the cache while it is worked on
PIECE_ON_DEVICE = 1 << 24  # an accelerator has no use for small pieces


class NoExamples(ValueError):
    """There is nothing to measure."""


class Chunks:
    """Pieces (n, K) of logits with their labels (n,), from the beginning each time it is iterated over.

    `read` is called for every pass and gives pieces of any size, as a function that opens a file does. What comes
    out is checked, has no rows with the label `ignore_index` (they may hold anything), is in single precision or
    double, and is cut up into pieces that fit a cache. With `from_logits=False` what is read are probabilities, and
    their logarithms come out (see `logits_from_probabilities`).

    >>> chunks = Chunks(lambda: [(torch.eye(2), torch.tensor([0, -1])), (torch.ones(1, 2), torch.tensor([1]))], -1)
    >>> [(z.tolist(), y.tolist()) for z, y in chunks]
    [([[1.0, 0.0]], [0]), ([[1.0, 1.0]], [1])]
    """

    def __init__(self, read: Reader, ignore_index: int | None = None, from_logits: bool = True) -> None:
        self.read = read
        self.ignore_index = ignore_index
        self.from_logits = from_logits
        self._rows: int | None = None

    def __iter__(self) -> Iterator[Piece]:
        rows = counted = 0
        classes = None
        for logits, labels in self.read():
            if logits.ndim != 2 or len(labels) != len(logits):
                raise ValueError(
                    f"each piece must be (rows, classes) and its labels (rows,), not {tuple(logits.shape)} "
                    f"and {tuple(labels.shape)}"
                )
            classes = classes or logits.shape[1]
            if logits.shape[1] != classes:
                raise ValueError(
                    f"row {rows} has {logits.shape[1]} classes where those before have {classes}"
                )
            for start in range(0, len(logits), size := rows_of_a_piece(logits)):
                some = slice(start, start + size)
                z, y = self._checked(logits[some], labels[some], rows + start)
                if len(z):
                    counted += len(z)
                    yield z, y
            rows += len(logits)
        if self._rows not in (None, rows):
            raise ValueError(
                f"there were {self._rows} rows when the data was read first and {rows} now; pass a function that "
                f"reads from the beginning each time it is called"
            )
        self._rows = rows
        if counted == 0:
            ignored = f": all {rows} labels are {self.ignore_index}, which is ignored" if rows else ""
            raise NoExamples(f"there are no examples{ignored}")

    def _checked(self, scores: Tensor, labels: Tensor, start: int) -> Piece:
        """Rows that count; `start` is where in the whole the first row is, for what is said when one is wrong."""
        z, y = scores.detach(), labels.detach()
        _real(z, "logits" if self.from_logits else "probabilities")
        if y.dtype == torch.bool or y.is_complex():
            raise ValueError(
                f"labels must be whole numbers, the index of each example's class, not {y.dtype}"
            )
        y = y if y.is_floating_point() else y.long()
        kept = None
        if self.ignore_index is not None:
            used = y != self.ignore_index
            if not bool(used.all()):
                kept = used.nonzero().flatten()
                z, y = z[kept.to(z.device)], y[kept]
        if len(z):
            where = _Place(start, kept)
            if not self.from_logits:
                return _log(_probabilities(z, where)), _classes(y, z, where)
            z = single_or_double(z)
            _finite(z, where, "logits")
            return z, _classes(y, z, where)
        return single_or_double(z), y.long()


def as_chunks(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    *,
    ignore_index: int | None = None,
    from_logits: bool = True,
) -> Chunks:
    """What a fit is given, as `Chunks`: arrays of logits (..., K) and labels (...), or a function that reads pieces.

    Arrays are not copied as a whole, be they on a device or mapped from a file.

    >>> chunks = as_chunks(np.zeros((1, 3, 4)), np.array([[3, -100, 1]]), ignore_index=-100)
    >>> [(tuple(z.shape), y.tolist()) for z, y in chunks]
    [((2, 4), [3, 1])]
    """
    if isinstance(logits, Chunks) or callable(logits):
        if labels is not None:
            raise ValueError(
                "labels come with the pieces that are read; do not pass them beside a function or Chunks"
            )
        if not isinstance(logits, Chunks):
            return Chunks(logits, ignore_index, from_logits)
        if ignore_index is not None or not from_logits:
            raise ValueError(
                "ignore_index and from_logits are said when Chunks are made, not again beside them"
            )
        return logits
    if labels is None:
        raise ValueError(
            "labels are missing; only a function that reads pieces of logits and labels goes without"
        )
    scores, classes = _array(logits), _array(labels)
    if scores.ndim < 2 or 0 in scores.shape:
        name = "logits" if from_logits else "probabilities"
        raise ValueError(
            f"{name} must be (examples, classes), at least one of each, not {tuple(scores.shape)}"
        )
    if tuple(classes.shape) != tuple(scores.shape[:-1]):
        examples = len(scores) if scores.ndim == 2 else tuple(scores.shape[:-1])
        raise ValueError(
            f"there must be one label for each of the {examples} examples, not {tuple(classes.shape)}"
        )
    _real(scores, "logits" if from_logits else "probabilities")
    if isinstance(classes, np.ndarray) and classes.dtype.kind not in "fiub":
        raise ValueError(
            f"labels must be whole numbers, the index of each example's class, not {classes.dtype}"
        )
    return Chunks(lambda: _slices(scores, classes), ignore_index, from_logits)


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

    return Chunks(read)


def logits_from_probabilities(probabilities: ArrayLike) -> Tensor:
    """log p as logits: softmax(log p) = p, so that temperature scaling makes p^(1/T) / sum of p^(1/T) of it.

    Where p is exactly 0, which only says that p was too small for its precision, the logarithm is that of the
    smallest positive number in this precision: -16.6 for half, -92.2 for bfloat16, -103.3 for single and -744.4 for
    double. So a zero stays below all that is not zero, and a label with probability 0 costs much but not infinitely.
    Any leading shape; half precision comes out in single.

    >>> logits_from_probabilities(torch.tensor([[1.0, 0.0]]))
    tensor([[   0.0000, -103.2789]])
    """
    found = _array(probabilities)
    _real(found, "probabilities")
    values = _tensor(found).detach()
    if values.ndim < 1 or 0 in values.shape:
        raise ValueError(f"probabilities must be (examples, classes), not {tuple(values.shape)}")
    rows = values.reshape(-1, values.shape[-1])
    return _log(_probabilities(rows, _Place(0, None))).reshape(values.shape)


def single_or_double(values: Tensor) -> Tensor:
    """Half precision as single, whole numbers as double: what sums of exponentials can be computed in."""
    if not values.is_floating_point():
        return values.double()
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def rows_of_a_piece(logits: Tensor) -> int:
    """How many rows to work on at a time."""
    return max(1, (PIECE if logits.device.type == "cpu" else PIECE_ON_DEVICE) // max(1, logits.shape[1]))


class _Place:
    """Where rows of a piece are in the whole."""

    def __init__(self, start: int, kept: Tensor | None) -> None:
        self.start, self.kept = start, kept

    def __call__(self, row: int) -> int:
        return self.start + (row if self.kept is None else int(self.kept[row]))


def _finite(z: Tensor, where: _Place, name: str) -> None:
    if all(map(math.isfinite, torch.stack(z.aminmax()).tolist())):  # NaN goes through both
        return
    row, place = (int(index) for index in (~torch.isfinite(z)).nonzero()[0])
    value = float(z[row, place])
    advice = "; give a masked class -1e4 instead" if name == "logits" and value == -math.inf else ""
    raise ValueError(f"{name} of example {where(row)} are not all finite: {value} for class {place}{advice}")


def _probabilities(values: Tensor, where: _Place) -> Tensor:
    p = values if values.is_floating_point() else values.double()
    _finite(single_or_double(p), where, "probabilities")
    low, high = p.amin(1), p.amax(1)
    sums = p.sum(1, dtype=torch.float64)
    tolerance = SUM_TOLERANCE[p.dtype]
    outside = (low < 0) | (high > 1 + tolerance)
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise ValueError(
            f"probabilities must lie between 0 and 1, but example {where(row)} has {float(low[row]):g} to "
            f"{float(high[row]):g}; logits are passed as they are"
        )
    apart = (sums - 1).abs() > tolerance
    if bool(apart.any()):
        row = int(apart.nonzero()[0])
        raise ValueError(
            f"probabilities of each example must add up to 1, but those of example {where(row)} add up to "
            f"{float(sums[row]):g}; divide by the sum, or pass all classes"
        )
    return p


def _log(p: Tensor) -> Tensor:
    precision = torch.finfo(p.dtype)
    lowest = math.log(precision.tiny) + math.log(precision.eps)
    p = single_or_double(p)
    return torch.where(p > 0, p.log(), lowest)


def _classes(y: Tensor, z: Tensor, where: _Place) -> Tensor:
    if y.is_floating_point() and bool((broken := y != y.round()).any()):
        row = int(broken.nonzero()[0])
        raise ValueError(
            f"labels must be whole numbers, but that of example {where(row)} is {float(y[row]):g}"
        )
    classes = z.shape[1]
    low, high = torch.stack(y.aminmax()).tolist()
    if low < 0 or high >= classes:
        row = int(((y < 0) | (y >= classes)).nonzero()[0])
        raise ValueError(
            f"labels must lie between 0 and {classes - 1} for {classes} classes, but that of example {where(row)} is "
            f"{y[row].item():g}; rows without a label are left out by ignore_index"
        )
    return y.to(z.device, torch.int64)


def _array(values: ArrayLike) -> Tensor | NDArray[np.generic]:
    return values if isinstance(values, Tensor | np.ndarray) else np.asarray(values)


def _real(values: Tensor | NDArray[np.generic], name: str) -> None:
    if isinstance(values, Tensor):
        real = values.dtype != torch.bool and not values.is_complex()
    else:
        real = values.dtype.kind in "fiu"
    if not real:
        raise ValueError(f"{name} must be real numbers, not {values.dtype}")


def _slices(scores: Tensor | NDArray[np.generic], labels: Tensor | NDArray[np.generic]) -> Iterator[Piece]:
    """Rows of arrays of any leading shape, a piece at a time; nothing else is ever copied."""
    if scores.ndim > 2:
        # Only what lies in one block can be reshaped without a copy of the whole.
        if scores.is_contiguous() if isinstance(scores, Tensor) else scores.flags.c_contiguous:
            yield from _slices(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))
        else:
            for one, some in zip(scores, labels, strict=True):
                yield from _slices(one, some)
        return
    if isinstance(scores, Tensor):
        yield scores, _tensor(labels)
        return
    size = max(1, PIECE // scores.shape[1])
    for start in range(0, len(scores), size):
        yield _tensor(scores[start : start + size]), _tensor(labels[start : start + size])


def _tensor(values: Tensor | NDArray[np.generic]) -> Tensor:
    if isinstance(values, Tensor):
        return values
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    if native.dtype.kind in "iu":
        native = native.astype(np.int64, copy=False)
    elif native.dtype == np.longdouble:
        native = native.astype(np.float64, copy=False)
    # torch shares memory only with what may be written to, and knows no negative steps.
    plain = native.flags.writeable and min(native.strides, default=0) >= 0
    return torch.from_numpy(native if plain else native.copy())


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
