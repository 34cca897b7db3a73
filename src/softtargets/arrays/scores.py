"""Logits and probabilities as tensors, and the one place where rows of them are looked at.

Tensors stay on their device and in their precision; nothing is copied that need not be.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays.tolerances import BY_PRECISION

ArrayLike = Tensor | NDArray[np.generic]


# torch cannot compare them.
_LARGE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


def as_tensor(values: ArrayLike) -> Tensor:
    """A tensor of the same numbers, in the same memory where torch can use it; nothing here writes to it."""
    if isinstance(values, Tensor):
        if values.layout != torch.strided:
            raise ValueError("sparse and nested tensors are not accepted; pass its to_dense() or padded form")
        if values.is_meta:
            raise ValueError("a tensor on the meta device has no values; pass one on a CPU or a GPU")
        return values.long() if values.dtype in _LARGE_UNSIGNED else values
    array = np.asarray(values)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    elif array.dtype == np.longdouble:
        array = array.astype(np.float64, copy=False)
    if any(stride < 0 for stride in array.strides):
        array = array.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a read-only map of a file
        return torch.as_tensor(array, device="cpu")  # whatever the default device


def as_floating(values: ArrayLike, name: str) -> Tensor:
    """Real numbers in a precision that torch computes in; whole numbers become double."""
    if not isinstance(values, Tensor) and np.asarray(values).dtype.kind not in "fiubc":
        raise ValueError(f"{name} must be real numbers, not {np.asarray(values).dtype}")
    found = as_tensor(values)
    if found.is_complex() or found.dtype == torch.bool:
        raise ValueError(f"{name} must be real numbers, not {found.dtype}")
    return found if _precision(found.dtype) in BY_PRECISION else found.double()


def single_or_double(values: Tensor) -> Tensor:
    """Half precision as single, whole numbers as double: what sums of exponentials can be computed in."""
    if not values.is_floating_point():
        return values.double()
    return values if values.dtype in (torch.float32, torch.float64) else values.float()


def as_logits(values: ArrayLike, name: str = "logits") -> Tensor:
    """Finite numbers (N, K), at least one example and one class.

    >>> as_logits(np.zeros((2, 3), dtype=np.float32)).shape
    torch.Size([2, 3])
    >>> as_logits(torch.tensor([[0.0, float("nan")]]))
    Traceback (most recent call last):
    ValueError: logits of example 0 are not all finite: nan for class 1
    """
    return _rows(values, name, None)


def as_probabilities(values: ArrayLike, name: str = "probabilities") -> Tensor:
    """Numbers (N, K) from 0 to 1 that add up to 1 for each example.

    >>> as_probabilities(torch.tensor([[2.0, -1.0]]))
    Traceback (most recent call last):
    ValueError: probabilities must lie between 0 and 1, but example 0 has -1 to 2; pass softmax(logits), not logits
    """
    found = as_floating(values, name)
    return _rows(found, name, sum_tolerance(found.dtype))


def sum_tolerance(dtype: torch.dtype) -> float:
    """How far probabilities of this precision may be from adding up to 1."""
    return BY_PRECISION[_precision(dtype)]


class ScoreFault(NamedTuple):
    """What is wrong with a `row`: a number that is not finite, one outside 0 to 1, or the sum.

    `low` and `high` are the row's; `column` and `value` are those of the number that is not finite, or `value` the sum.
    """

    row: int
    what: Literal["infinite", "outside", "sum"]
    low: float
    high: float
    column: int
    value: float

    def sentence(self, name: str, example: int) -> str:
        """What to tell whoever gave the scores."""
        if self.what == "infinite":
            masked = self.value == -math.inf and name == "logits"
            advice = "; give a masked class -1e4 instead" if masked else ""
            return f"{name} of example {example} are not all finite: {self.value} for class {self.column}{advice}"
        if self.what == "outside":
            return (
                f"{name} must lie between 0 and 1, but example {example} has {self.low:g} to {self.high:g}; "
                "pass softmax(logits), not logits"
            )
        return (
            f"{name} of each example must add up to 1, but those of example {example} add up to {self.value:g}; "
            "divide by the sum, or pass all classes"
        )


def find_fault(scores: Tensor, tolerance: float | None) -> ScoreFault | None:
    """The first row (n, K) with a number that is not finite or, given a tolerance, that is no distribution."""
    if len(scores) == 0:
        return None
    # NaN goes through both ends.
    if tolerance is None and all(map(math.isfinite, torch.stack(scores.aminmax()).tolist())):
        return None
    low, high = scores.aminmax(dim=1)
    sums = scores.sum(1, dtype=torch.float64)
    bad = ~(torch.isfinite(low) & torch.isfinite(high))
    if tolerance is not None:
        bad = bad | (low < 0) | (high > 1 + tolerance) | ((sums - 1).abs() > tolerance)
    if not bool(bad.any()):
        return None
    row = int(bad.nonzero()[0])
    ends = float(low[row]), float(high[row])
    if not all(map(math.isfinite, ends)):
        column = int((~torch.isfinite(scores[row])).nonzero()[0])
        return ScoreFault(row, "infinite", *ends, column, float(scores[row, column]))
    outside = tolerance is not None and (ends[0] < 0 or ends[1] > 1 + tolerance)
    return ScoreFault(row, "outside" if outside else "sum", *ends, 0, float(sums[row]))


def refuse_fault(
    scores: Tensor, tolerance: float | None, name: str, place: Callable[[int], int] = int
) -> None:
    """Raise the sentence about the first wrong row, if there is one; `place` is where a row is in the whole."""
    if fault := find_fault(scores, tolerance):
        raise ValueError(fault.sentence(name, place(fault.row)))


def _rows(values: ArrayLike, name: str, tolerance: float | None) -> Tensor:
    found = as_floating(values, name)
    if found.ndim != 2 or 0 in found.shape:
        raise ValueError(
            f"{name} must be (examples, classes), at least one of each, not {tuple(found.shape)}"
        )
    refuse_fault(found, tolerance, name)
    return found


def _precision(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
