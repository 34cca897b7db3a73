"""What every update shares: numbers that runs may have their own of, rates per layer, weight decay in three forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError
from softtargets.recipes import Optimiser
from softtargets.training.sums import run_norms, run_sums

Number = float | Tensor  # one that all runs of a stack share, or one for each
N = TypeVar("N", bound=Number)
Tensors = Sequence[Tensor]  # one for each parameter
Memory = Mapping[str, Tensors]  # what an optimiser keeps, by slot


class Update(ABC):
    r"""One step of an optimiser, in place. Parameters of a stack have the runs as first dimension (``lead=1``).

    Weight decay :math:`\lambda` on the chosen parameters w, by the recipe's ``decay_form``:

    - ``gradient``: :math:`\lambda w` joins the gradient in `apply_`, after clipping, as in ``torch.optim``;
    - ``loss``: :math:`\tfrac12 \lambda \sum w^2` joins the loss, so :math:`\lambda w` is clipped with the rest
      (TensorFlow's ``l2_loss``; the nets of Müller et al. 2019);
    - ``norm``: :math:`\lambda \lVert w \rVert` of each parameter joins the loss, without the square (what the
      replication of that paper computes); its gradient is :math:`\lambda w / \lVert w \rVert`, and 0 at 0.
    """

    # The names of the tensors kept for each parameter.
    slots: tuple[str, ...] = ()

    def __init__(
        self,
        recipes: Sequence[Any],
        names: Sequence[str],
        lead: int,
        device: torch.device | str,
        dtype: torch.dtype,
    ) -> None:
        self.lead, self.dtype, self._device = lead, dtype, device
        self._form: str = agreed(recipes, "decay_form")
        factors = [rate_factors_of(recipe.rates, names) for recipe in recipes]
        decays = [
            [recipe.weight_decay * chosen for chosen in decayed(recipe.decay_on, names)] for recipe in recipes
        ]
        self._factors = [self._number(values) for values in zip(*factors, strict=True)]
        self._decays = [self._number(values) for values in zip(*decays, strict=True)]
        self._read(recipes)

    def initial(self, parameters: Tensors) -> dict[str, list[Tensor]]:
        """The state before the first step: zeros, a list for each slot."""
        for parameter in parameters:
            if parameter.dtype != self.dtype:
                raise ValueError(
                    f"the parameters are {parameter.dtype}: make_update(..., dtype={parameter.dtype})"
                )
        return {slot: [torch.zeros_like(parameter) for parameter in parameters] for slot in self.slots}

    @torch.no_grad()
    def penalty_(self, parameters: Tensors, gradients: Tensors) -> Tensor | None:
        """Add the gradient of a weight decay that is part of the loss; return its value, one for each run of a stack.

        To be called before clipping. None where the decay is no part of the loss.
        """
        if self._form == "gradient":
            return None
        total = torch.zeros(parameters[0].shape[: self.lead], dtype=self.dtype, device=parameters[0].device)
        for decay, parameter, gradient in zip(self._decays, parameters, gradients, strict=True):
            if is_exactly(decay, 0.0):
                continue
            weights = flat(parameter, self.lead)
            if self._form == "loss":
                plus_(gradient, decay, parameter, self.lead)
                total += 0.5 * decay * (run_sums(weights, True) if self.lead else weights.square().sum(-1))
            else:
                norm = run_norms(weights)
                slope = torch.where(norm == 0, norm, decay * norm.reciprocal())
                gradient.addcmul_(parameter, along(slope, parameter, self.lead))
                total += decay * norm
        return total

    @abstractmethod
    def apply_(
        self, parameters: Tensors, gradients: Tensors, state: Memory, rate: Tensor, step: Tensor
    ) -> None:
        """Move the parameters and the state by one step; the gradients stay as they are.

        `rate` is the learning rate and `step` the number of steps taken before, each one value or one for each run of
        a stack, on the device of the parameters. A run's state is that of `initial` while its step is 0.
        """

    def bucketed(self, apart: Collection[int] = ()) -> list[list[int]]:
        """Group the parameters of one net by rate and decay, and some `apart` from the others; from now on one tensor a
        group is expected.

        Norms are of each parameter: with ``decay_form: norm`` those that are decayed stay by themselves.
        """
        groups: dict[tuple[object, ...], list[int]] = {}
        for index, (factor, decay) in enumerate(zip(self._factors, self._decays, strict=True)):
            alone = index if self._form == "norm" and decay != 0 else -1
            groups.setdefault((factor, decay, alone, index in apart), []).append(index)
        chosen = list(groups.values())
        self._factors = [self._factors[group[0]] for group in chosen]
        self._decays = [self._decays[group[0]] for group in chosen]
        return chosen

    @abstractmethod
    def _read(self, recipes: Sequence[Any]) -> None:
        """Take what only this kind of optimiser has."""

    def _number(self, values: Sequence[float]) -> Number:
        """The number of one net; of a stack a tensor (runs,), so that a run is rounded alike whatever its company.

        Nothing is rounded where all have 0 or 1, which may spare operations.
        """
        if len(set(values)) == 1 and (not self.lead or values[0] in (0, 1)):
            return float(values[0])
        return torch.tensor(values, dtype=self.dtype, device=self._device)

    def _with_decay(self, index: int, parameter: Tensor, gradient: Tensor) -> Tensor:
        if self._form != "gradient" or is_exactly(self._decays[index], 0.0):
            return gradient
        return plus(gradient, self._decays[index], parameter, self.lead)

    def _rate_of(self, index: int, rate: Tensor, parameter: Tensor) -> Tensor:
        factor = self._factors[index]
        own = rate if is_exactly(factor, 1.0) else rate * factor
        return along(own, parameter, self.lead)


def rate_factors_of(rates: Sequence[tuple[str, float]], names: Sequence[str]) -> list[float]:
    """The factor on the learning rate of each parameter: that of the first pattern which matches, else 1.

    >>> rate_factors_of([("head.bias", 2.0), ("head.*", 0.1)], ["body.weight", "head.weight", "head.bias"])
    [1.0, 0.1, 2.0]
    """
    first = [_first(name, [pattern for pattern, _ in rates]) for name in names]
    for place, (pattern, _) in enumerate(rates):
        _refuse_without_match("rates", pattern, names)
        if place not in first:
            raise RecipeError(
                f"{pattern!r} in rates has no effect: patterns before it match the same parameters, and the first "
                "match counts; put it before them",
                "optimiser",
            )
    return [1.0 if place is None else rates[place][1] for place in first]


def decayed(patterns: Sequence[str], names: Sequence[str]) -> list[bool]:
    """Whether each parameter is decayed: where one of the patterns matches, or everywhere without patterns.

    >>> decayed(["*.weight"], ["head.weight", "head.bias"])
    [True, False]
    """
    for pattern in patterns:
        _refuse_without_match("decay_on", pattern, names)
    return [not patterns or _first(name, patterns) is not None for name in names]


def _first(name: str, patterns: Sequence[str]) -> int | None:
    return next((place for place, pattern in enumerate(patterns) if fnmatchcase(name, pattern)), None)


def _refuse_without_match(field: str, pattern: str, names: Sequence[str]) -> None:
    if not any(fnmatchcase(name, pattern) for name in names):
        close = ", ".join(get_close_matches(pattern, names, n=3, cutoff=0))
        raise RecipeError(
            f"{pattern!r} in {field} matches no parameter; the nearest are {close}", "optimiser"
        )


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
    """All numbers of a parameter in one dimension, behind the runs if there are any; in the order of their memory."""
    strides = stack.stride()
    order = sorted(range(lead, stack.dim()), key=lambda dim: -strides[dim])
    return stack.permute((*range(lead), *order)).reshape((*stack.shape[:lead], -1))
