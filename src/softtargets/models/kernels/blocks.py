"""Blocks of residual nets computed by our kernels as a whole, in the place of their layers.

A block x + conv(relu(norm(conv(relu(norm(x)))))) takes a kernel for each convolution, which leaves the sums that the
norm behind it needs, and one pass over the maps for each norm with its ReLU; backwards a kernel for each of both
gradients of a convolution, and one pass for each norm. A block that is followed by one of its kind hands on the sums of
its result.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.models.kernels import norms
from softtargets.models.kernels.maps import MOST_NUMBERS, asked_for, channels_last
from softtargets.models.kernels.parts import Parts, gradients_of, learnt_by
from softtargets.models.preact_resnet import PreActBlock


class FusedPreActBlock(PreActBlock):
    """A pre-activation block whose shortcut is the identity, or a 1 x 1 convolution with a norm."""

    slight = True  # kernels do everything: nothing is left to compile
    hands_on = False

    def forward(self, maps: Tensor, sums: Tensor | None = None) -> Any:
        """As the layers do, of maps and perhaps their sums; with the sums of the result where it hands them on."""
        dtype, wide = asked_for(maps), max(self.norm1.num_features, self.norm2.num_features)
        if dtype is None or maps[:, 0].numel() * wide >= MOST_NUMBERS:
            return super().forward(maps)
        last = channels_last(maps, dtype)
        layers: list[Any] = [(self.conv1, self.norm1), (self.conv2, self.norm2)]
        if self.shortcut is not None:
            layers.append(tuple(self.shortcut.children()))
        learnt = learnt_by(layers)
        stride = self.conv1.stride[0]
        if not self.training:
            return _evaluated(last, Parts.of(learnt), stride).permute(0, 3, 1, 2)
        found, new_sums = _Block.apply(last, sums, stride, *learnt)  # type: ignore[no-untyped-call]
        found = found.permute(0, 3, 1, 2)
        return (found, new_sums) if self.hands_on else found

    def extra_repr(self) -> str:
        """Blocks that hand on and those that do not are different."""
        return "hands on" if self.hands_on else ""


class _Block(torch.autograd.Function):
    """The block in training. Its gradient takes account of the norms' sums, which nothing else depends on."""

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, sums: Tensor | None, stride: int, *learnt: Any
    ) -> tuple[Tensor, Tensor]:
        parts = Parts.of(learnt)
        layer1, layer2, *sides = layers = parts.layers(maps, stride, norms.lay)
        # The block before ends with a 3 x 3 convolution that keeps the number of channels.
        _, height, width, channels = maps.shape
        fold = 1 if sums is None else norms.fold_of(channels, height, width)
        sums = norms.sums_of(maps) if sums is None else sums
        norm1 = norms.norm_of(sums, maps, parts.norms[0], fold)
        seen1 = norms.activated(maps, norm1)
        inner, inner_sums = norms.convolve(seen1, layer1)
        norm2 = norms.norm_of(inner_sums, inner, parts.norms[1], layer1.fold)
        seen2 = norms.activated(inner, norm2)
        kept: list[Tensor] = []
        for layer in sides:
            side, side_sums = norms.convolve(seen1, layer)
            kept = [side, norms.norm_of(side_sums, side, parts.norms[2])]
        result, new_sums = norms.convolve(seen2, layer2, *(kept or [maps]))
        ctx.save_for_backward(maps, norm1, seen1, inner, norm2, seen2, *kept)
        ctx.layers = layers
        ctx.mark_non_differentiable(new_sums)
        return result, new_sums

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Any, ...]:
        maps, norm1, seen1, inner, norm2, seen2, *kept = ctx.saved_tensors
        layer1, layer2, *sides = ctx.layers
        upstream = upstream.contiguous()
        of_weight2 = norms.gradient_of_weights(seen2, upstream, layer2)
        behind = norms.gradient_behind(upstream, layer2, inner, norm2)
        of_inner, *of_norm2 = norms.gradient_before(*behind, inner, norm2)
        of_weights = [norms.gradient_of_weights(seen1, of_inner, layer1), of_weight2]
        of_norms = [of_norm2]
        aside: Tensor | None = None
        straight: Tensor | None = upstream
        for layer in sides:
            side_sums = norms.gradient_sums_of(upstream, *kept)
            of_side, *of_norm3 = norms.gradient_before(upstream, side_sums, *kept)
            of_weights.append(norms.gradient_of_weights(seen1, of_side, layer))
            of_norms.append(of_norm3)
            aside, straight = norms.gradient_of_maps(of_side, layer, maps), None
        behind = norms.gradient_behind(of_inner, layer1, maps, norm1, aside)
        of_maps, *of_norm1 = norms.gradient_before(*behind, maps, norm1, straight)
        return of_maps, None, None, *gradients_of([of_norm1, *of_norms], of_weights)


def _evaluated(maps: Tensor, parts: Parts, stride: int) -> Tensor:
    norm1, norm2, *thirds = (norms.known_norm(norm, len(norm.gains)) for norm in parts.norms)
    layer1, layer2, *sides = parts.layers(maps, stride, norms.lay)
    seen = norms.activated(maps, norm1)
    inner, _ = norms.convolve(seen, layer1)
    kept: list[Tensor] = [maps]
    for layer, norm3 in zip(sides, thirds, strict=True):
        kept = [norms.convolve(seen, layer)[0], norm3]
    return norms.convolve(norms.activated(inner, norm2), layer2, *kept)[0]
