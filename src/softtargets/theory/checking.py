"""Checks of what the theory is asked about: rates, numbers of classes, matrices; one sentence for what cannot be."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import nearest

Array: TypeAlias = NDArray[np.float64]

# As with numpy's functions, numbers give a float and arrays give an array.
Numbers: TypeAlias = Any

KINDS = ("alpha", "beta", "gamma")
SPREADS = ("all", "others")

# How far a sum of probabilities may lie from 1: as for the matrices of losses, so that what these take is taken here.
SUM_TOLERANCE = 1e-4


def as_choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """One of a few names.

    >>> as_choice("kind", "bta", KINDS)
    Traceback (most recent call last):
    ValueError: kind must be 'alpha', 'beta' or 'gamma', not 'bta' (did you mean 'beta'?)
    """
    if not isinstance(value, str) or value not in allowed:
        listed = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        close = nearest(value, allowed) if isinstance(value, str) else ""
        raise ValueError(f"{name} must be {listed}, not {value!r}{close}")
    return value


def as_array(name: str, value: Any) -> Array:
    """Numbers of any kind, a tensor on any device among them, in double precision."""
    if hasattr(value, "detach"):  # a tensor; torch itself is not needed here
        value = value.detach().cpu().double().numpy()
    try:
        found = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be a number or an array of numbers, not a ragged list") from None
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{name} must be a number or an array of numbers, not {_shown(value, found)}")
    return found.astype(np.float64)


def as_rate(name: str, value: Any, limits: bool) -> Array:
    """Probabilities strictly between 0 and 1, or also 0 and 1 themselves where limits are asked for.

    >>> as_rate("p", 1.2, limits=False)
    Traceback (most recent call last):
    ValueError: p must lie strictly between 0 and 1, not 1.2; give it as a probability
    >>> as_rate("p", [0.5, 1.0], limits=False)
    Traceback (most recent call last):
    ValueError: p must lie strictly between 0 and 1, but at index 1 it is 1; pass limits=True for the limit
    """
    found = as_array(name, value)
    inside = (found >= 0) & (found <= 1) if limits else (found > 0) & (found < 1)
    if not inside.all():
        where, wrong = _first(found, ~inside)
        allowed = "lie between 0 and 1" if limits else "lie strictly between 0 and 1"
        todo = "pass limits=True for the limit" if wrong in (0, 1) else "give it as a probability"
        raise ValueError(f"{name} must {allowed}, {where} {wrong:g}; {todo}")
    return found


def as_classes(value: Any, infinite: bool = False) -> Array:
    """Whole numbers of classes, at least two; `math.inf` only where there is a limit.

    >>> as_classes(1)
    Traceback (most recent call last):
    ValueError: classes must be whole numbers from 2, not 1: labels can only be wrong among at least two classes
    """
    found = as_array("classes", value)
    fine = (found >= 2) & (found == np.floor(found)) & (np.isfinite(found) | infinite)
    if not fine.all():
        where, wrong = _first(found, ~fine)
        why = (
            "see limiting_loss for what remains of the loss of more and more classes"
            if np.isposinf(wrong)
            else "labels can only be wrong among at least two classes"
        )
        raise ValueError(f"classes must be whole numbers from 2, {where} {wrong:g}: {why}")
    return found


def as_together(**arrays: Array) -> list[Array]:
    """The arrays in one shape.

    >>> as_together(p=np.zeros(2), a=np.zeros(3))
    Traceback (most recent call last):
    ValueError: p and a must fit together, but have shapes (2,) and (3,); add axes, as in p[:, None]
    """
    try:
        return list(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        names, shapes = list(arrays), [str(array.shape) for array in arrays.values()]
        raise ValueError(
            f"{_listed(names)} must fit together, but have shapes {_listed(shapes)}; "
            f"add axes, as in {names[0]}[:, None]"
        ) from None


def as_stochastic(name: str, value: Any) -> Array:
    """Square matrices (..., M, M), at least 2 x 2, whose rows are distributions; divided by their sums.

    >>> as_stochastic("T", [[0.9, 0.3], [0.1, 0.7]])
    Traceback (most recent call last):
    ValueError: T must have rows that sum to 1, but row 0 sums to 1.2; its columns do: pass the transpose
    """
    found = as_array(name, value)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2] or found.shape[-1] < 2 or found.size == 0:
        raise ValueError(
            f"{name} must be a square matrix, a row and a column for each of at least two classes, not of shape "
            f"{found.shape}"
        )
    inside = (found >= 0) & np.isfinite(found)
    if not inside.all():
        *_, row, column = (int(index) for index in np.argwhere(~inside)[0])
        wrong = found[~inside][0]
        raise ValueError(
            f"{name} must hold probabilities, at least 0, but row {row}, column {column} has {wrong:g}"
        )
    sums = found.sum(-1)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        row = int(np.argwhere(off)[0][-1])
        by_columns = bool((np.abs(found.sum(-2) - 1) <= SUM_TOLERANCE).all())
        todo = "its columns do: pass the transpose" if by_columns else "divide each row by its sum"
        raise ValueError(
            f"{name} must have rows that sum to 1, but row {row} sums to {sums[off][0]:g}; {todo}"
        )
    stochastic: Array = found / sums[..., None]
    return stochastic


def as_prior(value: Any, classes: int) -> Array:
    """How often each clean label occurs (..., M); without one all are equally frequent.

    >>> as_prior([0.5, 0.4], classes=2)
    Traceback (most recent call last):
    ValueError: prior must sum to 1, not 0.9; divide it by its sum
    """
    if value is None:
        return np.full(classes, 1 / classes)
    found = as_array("prior", value)
    if found.ndim == 0 or found.shape[-1] != classes:
        raise ValueError(
            f"prior must have one probability for each of the {classes} classes, not shape {found.shape}"
        )
    if not ((found >= 0) & np.isfinite(found)).all():
        wrong = found[~((found >= 0) & np.isfinite(found))][0]
        raise ValueError(f"prior must hold probabilities, at least 0, not {wrong:g}")
    sums = found.sum(-1, keepdims=True)
    if (np.abs(sums - 1) > SUM_TOLERANCE).any():
        wrong = sums[np.abs(sums - 1) > SUM_TOLERANCE][0]
        raise ValueError(f"prior must sum to 1, not {wrong:g}; divide it by its sum")
    prior: Array = found / sums
    return prior


def as_given(result: Array) -> Numbers:
    """A float for numbers, an array for arrays."""
    return float(result) if result.ndim == 0 else result


def _first(found: Array, wrong: NDArray[np.bool_]) -> tuple[str, float]:
    value = float(found[wrong][0])
    if found.ndim == 0:
        return "not", value
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"but at index {index[0] if len(index) == 1 else index} it is", value


def _listed(names: list[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}"


def _shown(value: Any, found: NDArray[Any]) -> str:
    return repr(value) if found.ndim == 0 else f"an array of {found.dtype}"
