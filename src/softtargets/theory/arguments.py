"""Checks of what the theory is asked about: rates, numbers of classes, matrices; one sentence for what cannot be."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import WRITTEN, as_numbers, check_distributions
from softtargets.exceptions import nearest

Array: TypeAlias = NDArray[np.float64]

# As with numpy's functions, numbers give a float and arrays give an array.
Numbers: TypeAlias = Any

KINDS = ("alpha", "beta", "gamma")
# The same by what the test labels are, which says more: alpha is also the name of a strength of smoothing.
KINDS_BY_TEST_LABELS = {"clean": "alpha", "noisy": "beta", "smoothed": "gamma"}
SPREADS = ("all", "others")


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


def as_kind(value: Any) -> str:
    """What a model is tested against: one of the paper's three types, or its name by the test labels.

    >>> as_kind("alpha"), as_kind("clean"), as_kind("noisy"), as_kind("smoothed")
    ('alpha', 'alpha', 'beta', 'gamma')
    """
    if isinstance(value, str) and value in KINDS_BY_TEST_LABELS:
        return KINDS_BY_TEST_LABELS[value]
    try:
        return as_choice("kind", value, KINDS)
    except ValueError as error:
        if isinstance(value, str) and (close := nearest(value, KINDS_BY_TEST_LABELS)):
            raise ValueError(f"kind must be 'clean', 'noisy' or 'smoothed', not {value!r}{close}") from None
        raise ValueError(f"{error}; or, by the test labels, 'clean', 'noisy' or 'smoothed'") from None


def as_rate(name: str, value: Any, limits: bool) -> Array:
    """Probabilities strictly between 0 and 1, or also 0 and 1 themselves where limits are asked for.

    >>> as_rate("p", 1.2, limits=False)
    Traceback (most recent call last):
    ValueError: p must lie strictly between 0 and 1, not 1.2; give it as a probability
    >>> as_rate("p", [0.5, 1.0], limits=False)
    Traceback (most recent call last):
    ValueError: p must lie strictly between 0 and 1, but at index 1 it is 1; pass limits=True for the limit
    """
    found = as_numbers(name, value)
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
    found = as_numbers("classes", value)
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


def one_number_of_classes(value: Any, infinite: bool = False) -> Array:
    """The same where there can be only one."""
    found = as_classes(value, infinite)
    if found.ndim:
        raise ValueError(f"classes must be one number here, not an array of shape {found.shape}")
    return found


def as_rates(limits: bool, classes: Any = None, infinite: bool = False, **rates: Any) -> list[Array]:
    """Rates by their names and, where it is given, the number of classes, all in one shape."""
    found = {name: as_rate(name, value, limits) for name, value in rates.items()}
    if classes is not None:
        found["classes"] = as_classes(classes, infinite)
    return as_together(**found)


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


def as_prior(value: Any, classes: int) -> Array:
    """How often each clean label occurs (..., M); without one all are equally frequent.

    >>> as_prior([0.5, 0.4], classes=2)
    Traceback (most recent call last):
    ValueError: prior must sum to 1, not 0.9; divide it by its sum
    """
    if value is None:
        return np.full(classes, 1 / classes)
    found = as_numbers("prior", value)
    if found.ndim == 0 or found.shape[-1] != classes:
        raise ValueError(
            f"prior must have one probability for each of the {classes} classes, not shape {found.shape}"
        )
    check_distributions("prior", found, WRITTEN, rows=False)
    return np.asarray(found / found.sum(-1, keepdims=True))


def as_result(result: Array) -> Numbers:
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
