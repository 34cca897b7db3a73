"""Numbers of a stack of runs: one that all runs share, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor

from softtargets.recipes import Optimiser

Number = float | Tensor
N = TypeVar("N", bound=Number)


def is_exactly(number: Number, value: float) -> bool:
    """Whether all runs share this value; the tensor of runs that differ is not looked at, the host would wait."""
    return isinstance(number, float) and number == value


def agreed(recipes: Sequence[Optimiser], field: str) -> Any:
    """The value of a field that decides what is computed, and so cannot differ between the runs of a stack."""
    found = {getattr(recipe, field) for recipe in recipes}
    if len(found) > 1:
        listed = ", ".join(sorted(map(str, found)))
        raise ValueError(f"{field} differs between the runs of a stack ({listed}); train them apart")
    return found.pop()


def along(number: N, like: Tensor, lead: int) -> N:
    """One for each run, shaped so that it broadcasts over the rest of a parameter; a shared number as it is.

    >>> import torch
    >>> along(torch.ones(3), torch.empty(3, 4, 5), lead=1).shape, along(torch.ones(1), torch.empty(4, 5), lead=0).shape
    (torch.Size([3, 1, 1]), torch.Size([1, 1]))
    """
    if isinstance(number, float):
        return number
    return number.reshape(number.shape[:lead] + (1,) * (like.dim() - lead))  # type: ignore[return-value]


def plus(base: Tensor, number: Number, other: Tensor, lead: int) -> Tensor:
    """``base + number * other``."""
    if isinstance(number, float):
        return base.add(other, alpha=number)
    return base.addcmul(other, along(number, other, lead))


def plus_(base: Tensor, number: Number, other: Tensor, lead: int) -> None:
    """``base += number * other``."""
    if isinstance(number, float):
        base.add_(other, alpha=number)
    else:
        base.addcmul_(other, along(number, other, lead))


def flat(stack: Tensor, lead: int) -> Tensor:
    """All numbers of a parameter in one dimension, behind the runs if there are any."""
    return stack.reshape((*stack.shape[:lead], -1))
