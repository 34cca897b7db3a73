"""Blocks of ResNet-18 and its like computed by our kernels as a whole, in the place of their layers.

A block relu(x + norm(conv(relu(norm(conv(x)))))) goes over its maps once for each norm with what follows it: forwards
with the ReLU, or the sum and the ReLU; backwards the same way. The sums that norms need come with the convolutions
that are ours; behind those of NVIDIA's library (`convolving` says which) they take a pass more.

A block that is followed by one of its kind gives its result twice, once for each way through the next: the gradients of
both come back apart and are added where they are read, instead of in a pass of their own.

Kernels want multiples of 16 channels, as tensor cores and the library do. Other maps get channels of zeros in the first
block and lose them after the last one; in between they are handed on with them. Weights and what norms have learnt are
zero there, and so is everything that follows from them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from softtargets.models.kernels import convolving, norms
from softtargets.models.kernels.convolving import EitherLayer
from softtargets.models.kernels.maps import MOST_NUMBERS, asked_for, channels_last
from softtargets.models.kernels.norms import Norm
from softtargets.models.kernels.parts import Parts, gradients_of, learnt_by
from softtargets.models.resnet18 import BasicBlock


class FusedBasicBlock(BasicBlock):
    """A basic block whose shortcut is the identity, or a 1 x 1 convolution with a norm."""

    slight = True  # kernels do everything: nothing is left to compile
    hands_on = False

    def forward(self, maps: Tensor, again: Tensor | None = None) -> Any:
        """As the layers do, of maps, perhaps given once more for the shortcut; the result twice where it hands on."""
        before, after = self.conv1.in_channels, self.conv2.out_channels
        dtype = asked_for(maps)
        if dtype is None or maps[:, 0].numel() * max(even(before), even(after)) >= MOST_NUMBERS:
            return super().forward(maps[:, :before])
        layers: list[Any] = [(self.conv1, self.norm1), (self.conv2, self.norm2)]
        if len(self.shortcut):
            layers.append(tuple(self.shortcut))
        learnt, stride = learnt_by(layers, even), self.conv1.stride[0]
        last = _evened(channels_last(maps, dtype))
        if not self.training:
            found = _evaluated(last, Parts.of(learnt), stride).permute(0, 3, 1, 2)
            return found if self.hands_on else found[:, :after]
        aside = None if again is None else _evened(channels_last(again, dtype))
        both = _Block.apply(last, aside, stride, *learnt)  # type: ignore[no-untyped-call]
        one, other = (each.permute(0, 3, 1, 2) for each in both)
        return (one, other) if self.hands_on else one[:, :after]

    def extra_repr(self) -> str:
        """Blocks that hand on and those that do not are different."""
        return "hands on" if self.hands_on else ""


def even(channels: int) -> int:
    """As many channels as kernels compute with where a net has so many.

    >>> even(16), even(19), even(33)
    (16, 32, 48)
    """
    return -(-channels // 16) * 16


def _evened(maps: Tensor) -> Tensor:
    """Maps with the channels last, with as many as kernels want of them."""
    missing = even(maps.shape[-1]) - maps.shape[-1]
    return functional.pad(maps, (0, missing)) if missing else maps


class _Block(torch.autograd.Function):
    """The block in training."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, again: Tensor | None, stride: int, *learnt: Any
    ) -> tuple[Tensor, Tensor]:
        parts = Parts.of(learnt)
        layer1, layer2, *sides = layers = parts.layers(maps, stride, convolving.lay)
        inner, norm1 = _convolved(maps, layer1, parts.norms[0])
        seen = norms.activated(inner, norm1)
        outer, norm2 = _convolved(seen, layer2, parts.norms[1])
        kept: list[Tensor] = []
        for layer in sides:
            kept = [*_convolved(maps, layer, parts.norms[2])]
        result = norms.activated(outer, norm2, *(kept or [maps]))
        ctx.save_for_backward(maps, inner, norm1, seen, outer, norm2, result, *kept)
        ctx.layers, ctx.apart = layers, again is not None
        ctx.learnt = [len(norm.gains) for norm in parts.norms]
        ctx.set_materialize_grads(False)  # of one of both results there may be none
        return result, result.detach()

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor | None) -> tuple[Any, ...]:
        maps, inner, norm1, seen, outer, norm2, result, *kept = ctx.saved_tensors
        layer1, layer2, *sides = ctx.layers
        one, *others = (each.contiguous() for each in upstream if each is not None)
        more = others[0] if others else None
        behind, sums, side_sums = norms.gradient_before_end(one, more, result, outer, norm2, *kept)
        of_outer, *of_norm2 = norms.gradient_before(behind, sums, outer, norm2)
        of_weight2 = convolving.gradient_of_weights(seen, of_outer, layer2)
        inner_behind = convolving.gradient_behind(of_outer, layer2, inner, norm1)
        of_inner, *of_norm1 = norms.gradient_before(*inner_behind, inner, norm1, masked=True)
        of_weights = [convolving.gradient_of_weights(maps, of_inner, layer1), of_weight2]
        of_norms = [of_norm1, of_norm2]
        aside = behind
        for layer in sides:
            assert side_sums is not None
            of_side, *of_norm3 = norms.gradient_before(behind, side_sums, *kept)
            of_weights.append(convolving.gradient_of_weights(maps, of_side, layer))
            of_norms.append(of_norm3)
            aside = convolving.gradient_of_maps(of_side, layer, maps)
        own = [[each[:count] for each in pair] for pair, count in zip(of_norms, ctx.learnt, strict=True)]
        learnt = gradients_of(own, of_weights)
        if ctx.apart:
            return convolving.gradient_of_maps(of_inner, layer1, maps), aside, None, *learnt
        return convolving.gradient_of_maps(of_inner, layer1, maps, aside), None, None, *learnt


def _convolved(maps: Tensor, layer: EitherLayer, norm: Norm) -> tuple[Tensor, Tensor]:
    """A convolution of maps, and the norm of the result."""
    found, sums = convolving.convolve(maps, layer)
    return found, norms.norm_of(norms.sums_of(found) if sums is None else sums, found, norm, layer.fold)


def _evaluated(maps: Tensor, parts: Parts, stride: int) -> Tensor:
    norm1, norm2, *thirds = (norms.known_norm(norm, even(len(norm.gains))) for norm in parts.norms)
    layer1, layer2, *sides = parts.layers(maps, stride, convolving.lay)
    inner, _ = convolving.convolve(maps, layer1)
    outer, _ = convolving.convolve(norms.activated(inner, norm1), layer2)
    kept: list[Tensor] = [maps]
    for layer, norm3 in zip(sides, thirds, strict=True):
        kept = [convolving.convolve(maps, layer)[0], norm3]
    return norms.activated(outer, norm2, *kept)
