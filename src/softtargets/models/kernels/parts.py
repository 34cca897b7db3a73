"""What a block of two convolutions with batch norms has learnt, as autograd wants it: one value after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.kernels import norms
from softtargets.models.kernels.norms import Norm

AnyLayer = TypeVar("AnyLayer")
Learnt: TypeAlias = Tensor | float


class Parts(NamedTuple):
    """Of the two layers of a block's branch, and of the shortcut's, if it has one."""

    norms: list[Norm]
    weights: list[Tensor]

    @classmethod
    def of(cls, learnt: Sequence[Learnt]) -> Parts:
        """Of all that `learnt_by` gives."""
        size = len(Norm._fields)
        count = len(learnt) // (size + 1)
        found = [Norm(*learnt[size * place : size * (place + 1)]) for place in range(count)]  # type: ignore[arg-type]
        return cls(found, list(learnt[size * count :]))  # type: ignore[arg-type]

    def layers(
        self, maps: Tensor, stride: int, lay: Callable[[Tensor, torch.dtype, int, int], AnyLayer]
    ) -> list[AnyLayer]:
        """The convolutions of a block of such maps."""
        _, height, width, channels = maps.shape
        weight1, weight2, *sides = self.weights
        keeps = stride == 1 and len(weight1) == channels
        fold1 = norms.fold_of(channels, height, width) if keeps else 1
        fold2 = norms.fold_of(len(weight2), -(-height // stride), -(-width // stride))
        first, second = lay(weight1, maps.dtype, stride, fold1), lay(weight2, maps.dtype, 1, fold2)
        return [first, second, *(lay(weight, maps.dtype, stride, 1) for weight in sides)]


def learnt_by(
    layers: Sequence[tuple[nn.Conv2d, nn.BatchNorm2d]], channels: Callable[[int], int] = int
) -> list[Learnt]:
    """All in a row: the fields of the norms, then the weights of the convolutions.

    channels: as how many channels so many are computed; weights are zeros between those that are too many.
    """
    return [
        *(value for _, norm in layers for value in _norm(norm)),
        *(_filled(convolution.weight, channels) for convolution, _ in layers),
    ]


def _filled(weights: Tensor, channels: Callable[[int], int]) -> Tensor:
    new, old = (channels(count) - count for count in weights.shape[:2])
    return functional.pad(weights, (0, 0, 0, 0, 0, old, 0, new)) if old or new else weights


def gradients_of(of_norms: Sequence[Sequence[Tensor]], of_weights: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradients of what `learnt_by` gives: of the gains and biases of norms, and of weights."""
    unlearnt = [None] * (len(Norm._fields) - 2)
    return [*(value for of_norm in of_norms for value in (*of_norm, *unlearnt)), *of_weights]


def _norm(layer: nn.BatchNorm2d) -> Norm:
    mean, variance, batches = layer.running_mean, layer.running_var, layer.num_batches_tracked
    assert mean is not None
    assert variance is not None
    assert batches is not None
    assert layer.momentum is not None
    return Norm(layer.weight, layer.bias, mean, variance, batches, layer.momentum, layer.eps)
