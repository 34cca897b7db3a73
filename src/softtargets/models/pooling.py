"""Layers that make maps smaller and have no weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Average(nn.Module):
    """The mean over all places, (N, C, H, W) to (N, C).

    >>> Average()(torch.arange(4.0).reshape(1, 1, 2, 2))
    tensor([[1.5000]])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """One number per channel."""
        return maps.mean(dim=(2, 3))


class SameMaxPool(nn.Module):
    """Maxima over 3 x 3 with stride 2 and TensorFlow's "SAME" padding: n pixels become ceil(n / 2).

    An odd number of pixels is padded by one on both sides, an even one only at its end, where torch's symmetric
    padding would shift every window by one pixel.

    >>> SameMaxPool()(torch.arange(4.0).repeat(1, 1, 4, 1))[0, 0, 0]
    tensor([2., 3.])
    """

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of half the height and width, rounded up."""
        height, width = maps.shape[-2:]
        padded = functional.pad(maps, (width % 2, 1, height % 2, 1), value=-torch.inf)
        return functional.max_pool2d(padded, kernel_size=3, stride=2)
