"""Blocks of ResNet-18 and its like computed by our kernels as a whole, in the place of their layers.

A block relu(x + norm(conv(relu(norm(conv(x)))))) goes over its maps once for each norm with what follows it: forwards
with the ReLU, or the sum and the ReLU; backwards the same way. The sums that norms need come with the convolutions
that are ours; behind those of NVIDIA's library (`convolving` says which) they take a pass more.

A block that is followed by one of its kind gives its result twice, once for each way through the next: the gradients of
both come back apart and are added where they are read, instead of in a pass of their own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

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
        dtype, wide = asked_for(maps), max(self.conv1.in_channels, self.conv2.out_channels)
        if dtype is None or maps[:, 0].numel() * wide >= MOST_NUMBERS:
            return super().forward(maps)
        layers: list[Any] = [(self.conv1, self.norm1), (self.conv2, self.norm2)]
        if len(self.shortcut):
            layers.append(tuple(self.shortcut))
        learnt, stride = learnt_by(layers), self.conv1.stride[0]
        last = channels_last(maps, dtype)
        if not self.training:
            return _evaluated(last, Parts.of(learnt), stride).permute(0, 3, 1, 2)
        aside = None if again is None else channels_last(again, dtype)
        found = _Block.apply(last, aside, stride, *learnt)  # type: ignore[no-untyped-call]
        one, other = (each.permute(0, 3, 1, 2) for each in found)
        return (one, other) if self.hands_on else one

    def extra_repr(self) -> str:
        """Blocks that hand on and those that do not are different."""
        return "hands on" if self.hands_on else ""


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
        learnt = gradients_of(of_norms, of_weights)
        if ctx.apart:
            return convolving.gradient_of_maps(of_inner, layer1, maps), aside, None, *learnt
        return convolving.gradient_of_maps(of_inner, layer1, maps, aside), None, None, *learnt


def _convolved(maps: Tensor, layer: EitherLayer, norm: Norm) -> tuple[Tensor, Tensor]:
    """A convolution of maps, and the norm of the result."""
    found, sums = convolving.convolve(maps, layer)
    return found, norms.norm_of(norms.sums_of(found) if sums is None else sums, found, norm, layer.fold)


def _evaluated(maps: Tensor, parts: Parts, stride: int) -> Tensor:
    norm1, norm2, *thirds = (norms.known_norm(norm) for norm in parts.norms)
    layer1, layer2, *sides = parts.layers(maps, stride, convolving.lay)
    inner, _ = convolving.convolve(maps, layer1)
    outer, _ = convolving.convolve(norms.activated(inner, norm1), layer2)
    kept: list[Tensor] = [maps]
    for layer, norm3 in zip(sides, thirds, strict=True):
        kept = [convolving.convolve(maps, layer)[0], norm3]
    return norms.activated(outer, norm2, *kept)
