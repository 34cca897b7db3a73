"""Checks of what a loss is constructed with; each refusal names the argument, the value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from softtargets.arrays import TARGET, as_numbers, check_distributions
from softtargets.exceptions import nearest


def hyperparameter(
    name: str, value: Any, low: float = 0.0, high: float = math.inf, *, open_low: bool = False
) -> float | Tensor:
    """A hyper-parameter: a number, or a tensor with one value, or with one value per run (1-D).

    >>> hyperparameter("alpha", 0.1, 0, 1)
    0.1
    >>> hyperparameter("alpha", 1.5, 0, 1)
    Traceback (most recent call last):
    ValueError: alpha must be between 0 and 1, not 1.5
    """
    allowed = _allowed(low, high, open_low)
    if isinstance(value, Tensor):
        if not value.dtype.is_floating_point or value.dim() > 1 or value.numel() == 0:
            raise TypeError(
                f"{name} must be a number, or a floating-point tensor with one value or one per run, "
                f"not a tensor of {value.dtype} with shape {tuple(value.shape)}"
            )
        if not has_numbers(value):
            return value
        values = value.detach().flatten()
        outside = values[~(torch.isfinite(values) & _inside(values, low, high, open_low))]
        if len(outside):
            raise ValueError(f"{name} must be {allowed}, not {outside[0].item():g}")
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number or a tensor of them, not {value!r}")
    if not (math.isfinite(value) and _inside(float(value), low, high, open_low)):
        raise ValueError(f"{name} must be {allowed}, not {value}")
    return float(value)


def whole_number(name: str, value: Any, low: int | None = 0) -> int:
    """A whole number, at least `low` if that is given.

    >>> whole_number("warmup_steps", 2.5)
    Traceback (most recent call last):
    TypeError: warmup_steps must be a whole number, not 2.5
    """
    if isinstance(value, bool) or not isinstance(value, Integral):  # numpy's too
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if low is not None and value < low:
        raise ValueError(f"{name} must be at least {low}, not {value}")
    return int(value)


def choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of a few names.

    >>> choice("spread", "al", ["all", "others"])
    Traceback (most recent call last):
    ValueError: spread must be 'all' or 'others', not 'al' (did you mean 'all'?)
    """
    names = list(allowed)
    if value not in names:
        listed = ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"
        close = nearest(value, names) if isinstance(value, str) else ""
        raise ValueError(f"{name} must be {listed}, not {value!r}{close}")
    return str(value)


def distribution(name: str, value: Any) -> Tensor:
    """A probability for each class: 1-D, nothing negative, summing to 1.

    >>> distribution("prior", torch.tensor([0.5, 0.4]))
    Traceback (most recent call last):
    ValueError: prior must sum to 1, not 0.9; divide it by its sum
    """
    vector = _floating(name, value, 1, "one probability per class")
    if has_numbers(vector):
        check_distributions(name, as_numbers(name, vector), TARGET, rows=False)
    return vector


def stochastic(name: str, value: Any) -> Tensor:
    """A K x K matrix whose rows are distributions.

    >>> stochastic("matrix", torch.tensor([[1.0, 0.0], [0.5, 0.6]]))
    Traceback (most recent call last):
    ValueError: matrix must have rows that sum to 1, but row 1 sums to 1.1; divide each row by its sum
    """
    matrix = _floating(name, value, 2, "one row per class")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} must be square, one row and one column per class, not {tuple(matrix.shape)}"
        )
    if has_numbers(matrix):
        check_distributions(name, as_numbers(name, matrix), TARGET)
    return matrix


def class_weights(value: Any) -> Tensor:
    """A factor for each class, as torch's ``weight``.

    >>> class_weights(torch.tensor([1.0, float("nan")]))
    Traceback (most recent call last):
    ValueError: weight must be finite for every class, but class 1 has nan
    """
    weight = _floating("weight", value, 1, "one factor per class")
    if has_numbers(weight) and len(bad := (~torch.isfinite(weight)).nonzero()):
        where = int(bad[0])
        raise ValueError(
            f"weight must be finite for every class, but class {where} has {weight[where].item():g}"
        )
    return weight


def _floating(name: str, value: Any, dimensions: int, meaning: str) -> Tensor:
    if not isinstance(value, Tensor):
        value = torch.as_tensor(value)
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must have floating-point numbers, not {value.dtype}; try {name}.float()")
    if value.dim() != dimensions or value.numel() == 0:
        raise ValueError(f"{name} must be {dimensions}-D ({meaning}), not of shape {tuple(value.shape)}")
    tensor: Tensor = value.detach()
    return tensor


def has_numbers(value: Tensor) -> bool:
    """Whether there are numbers to look at: not in a tensor on the meta device, nor in one of ``FakeTensorMode``."""
    return not (value.is_meta or is_fake(value))


def is_fake(value: Tensor) -> bool:
    """Whether a tensor has a shape, a precision and a device only."""
    return type(value) is not Tensor and hasattr(value, "fake_mode")


def _inside(values: Any, low: float, high: float, open_low: bool) -> Any:
    return (values > low if open_low else values >= low) & (values <= high)


def _allowed(low: float, high: float, open_low: bool) -> str:
    if high == math.inf:
        return f"{'above' if open_low else 'at least'} {low:g}"
    return f"above {low:g} and at most {high:g}" if open_low else f"between {low:g} and {high:g}"
