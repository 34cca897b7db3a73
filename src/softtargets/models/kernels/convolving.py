"""Convolutions of one net by whoever is faster: narrow ones by our kernels, wide ones by NVIDIA's library.

Our kernels leave the sums that norms need behind on their way; after the library they take a pass of their own.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from softtargets.models.kernels import library, norms
from softtargets.models.kernels.norms import Layer

# Channels, before or after, up to which a convolution is ours.
WIDEST = 64


class WideLayer(NamedTuple):
    """A convolution that keeps the size of maps but for its stride, by the library."""

    weights: Tensor
    stride: int
    fold: int = 1


EitherLayer: TypeAlias = Layer | WideLayer


def is_wide(channels: int, new_channels: int) -> bool:
    """Whether the library computes a convolution, and both of its gradients."""
    return max(channels, new_channels) > WIDEST


def lay(weights: Tensor, dtype: torch.dtype, stride: int = 1, fold: int = 1) -> EitherLayer:
    """Weights (new channels, channels, k, k) as whoever computes the convolution reads them."""
    new_channels, channels = weights.shape[:2]
    if is_wide(channels, new_channels):
        return WideLayer(library.weights_for(weights, dtype), stride)
    return norms.lay(weights, dtype, stride, fold)


def convolve(maps: Tensor, layer: EitherLayer) -> tuple[Tensor, Tensor | None]:
    """The convolution of maps, and the sums for a norm of the result where they are left behind."""
    if isinstance(layer, WideLayer):
        return library.convolve(maps, layer.weights, layer.stride), None
    return norms.convolve(maps, layer)


def gradient_behind(
    upstream: Tensor, layer: EitherLayer, before: Tensor, norm: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradient of a convolution of relu(norm(before)), of which the ReLU may still stop some, and sums without."""
    if isinstance(layer, WideLayer):
        found = library.gradient_of_maps(upstream, before, layer.weights, layer.stride)
        return found, norms.gradient_sums_of(found, before, norm, masked=True)
    return norms.gradient_behind(upstream, layer, before, norm)


def gradient_of_maps(
    upstream: Tensor, layer: EitherLayer, maps: Tensor, added: Tensor | None = None
) -> Tensor:
    """The gradient of what a convolution sees, plus what is `added`."""
    if isinstance(layer, WideLayer):
        found = library.gradient_of_maps(upstream, maps, layer.weights, layer.stride)
        return found if added is None else found.add_(added)
    return norms.gradient_of_maps(upstream, layer, maps, added)


def gradient_of_weights(maps: Tensor, upstream: Tensor, layer: EitherLayer) -> Tensor:
    """Of a convolution of maps, in single precision (new channels, channels, k, k)."""
    if isinstance(layer, WideLayer):
        return library.gradient_of_weights(maps, upstream, layer.weights, layer.stride)
    return norms.gradient_of_weights(maps, upstream, layer)
