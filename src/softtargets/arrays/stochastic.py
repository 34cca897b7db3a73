"""Distributions that people give: transition matrices, targets, priors. No torch; numpy comes when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from softtargets.arrays.tolerances import WRITTEN

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[np.float64]


def as_numbers(name: str, value: Any) -> Array:
    """Numbers of any kind, a tensor on any device among them, in double precision.

    >>> as_numbers("x", [[1, 2], [3]])
    Traceback (most recent call last):
    ValueError: x must be a number or an array of numbers, not a ragged list
    """
    import numpy as np

    if hasattr(value, "detach"):  # a tensor; torch itself is not needed here
        value = value.detach().cpu().double().numpy()
    try:
        found = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a number or an array of numbers, not a ragged list") from None
    if found.dtype.kind not in "iuf":
        shown = repr(value) if found.ndim == 0 else f"an array of {found.dtype}"
        raise ValueError(f"{name} must be a number or an array of numbers, not {shown}")
    return found.astype(np.float64)


def as_stochastic(name: str, value: Any, advice: str = "divide each row by its sum") -> Array:
    """Square matrices (..., M, M), at least 2 x 2, whose rows are distributions; divided by their sums.

    >>> as_stochastic("T", [[0.9, 0.3], [0.1, 0.7]])
    Traceback (most recent call last):
    ValueError: T must have rows that sum to 1, but row 0 sums to 1.2; its columns do: pass the transpose
    """
    found = as_numbers(name, value)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2] or found.shape[-1] < 2 or found.size == 0:
        raise ValueError(
            f"{name} must be a square matrix with a row and a column for each of at least two classes, not of shape "
            f"{found.shape}"
        )
    if bool((abs(found.sum(-2) - 1) <= WRITTEN).all()):
        advice = "its columns do: pass the transpose"
    check_distributions(name, found, WRITTEN, advice=advice)
    stochastic: Array = found / found.sum(-1, keepdims=True)
    return stochastic


def check_distributions(
    name: str,
    found: Array,
    tolerance: float,
    *,
    rows: bool = True,
    advice: str = "divide each row by its sum",
) -> None:
    """Refuse (..., M) that are no distributions, by the first entry or row that is wrong; without `rows` it is one.

    >>> check_distributions("prior", as_numbers("prior", [0.5, 0.4]), WRITTEN, rows=False)
    Traceback (most recent call last):
    ValueError: prior must sum to 1, not 0.9; divide it by its sum
    """
    import numpy as np

    wrong = ~(found >= 0)  # NaN too; what is infinite does not sum to 1
    if wrong.any():
        *_, row, column = (0, *(int(index) for index in np.argwhere(wrong)[0]))
        place = f"row {row}, column {column}" if rows else f"class {column}"
        raise ValueError(f"{name} must hold probabilities, at least 0, but {place} has {found[wrong][0]:g}")
    sums = found.sum(-1)
    off = np.abs(sums - 1) > tolerance
    if off.any():
        if not rows:
            raise ValueError(f"{name} must sum to 1, not {sums[off][0]:g}; divide it by its sum")
        row = int(np.argwhere(off)[0][-1])
        raise ValueError(
            f"{name} must have rows that sum to 1, but row {row} sums to {sums[off][0]:g}; {advice}"
        )


def wrong_row(matrix: Sequence[Sequence[float]], tolerance: float) -> tuple[int, str] | None:
    """The first row that does not belong into a square matrix of distributions, and why; for plain numbers from a file.

    Without numpy, so that a recipe is understood where nothing is installed.

    >>> wrong_row([[0.5, 0.5], [0.9, 0.2]], WRITTEN)
    (1, 'adds up to 1.1, not to 1; divide it by its sum')
    """
    for position, row in enumerate(matrix):
        if len(row) != len(matrix):
            return position, f"has {len(row)} numbers, not one for each of {len(matrix)} rows"
        if abs(sum(row) - 1) > tolerance:
            return position, f"adds up to {sum(row):g}, not to 1; divide it by its sum"
    return None
