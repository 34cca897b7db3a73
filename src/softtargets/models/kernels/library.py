"""Convolutions of wide maps by NVIDIA's library, on maps (images, height, width, channels), dense.

They keep the size of maps but for their stride. Weights (new channels, channels, k, k) have the channels last in memory
and the precision of the maps: `weights_for` makes such a copy, which serves the convolution and its gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from softtargets.models.kernels.launch import on_device, power_of_2
from softtargets.models.kernels.turning import turn_kernel

# Channels that one program turns.
TURNED = 128


def weights_for(weights: Tensor, dtype: torch.dtype) -> Tensor:
    """The weights as the library wants them, in one copy."""
    if weights.shape[-1] == 1:
        return weights.to(dtype)
    found = torch.empty_like(weights, dtype=dtype, memory_format=torch.channels_last)
    _turn(weights.contiguous(), found, back=False)
    return found


def convolve(maps: Tensor, weights: Tensor, stride: int) -> Tensor:
    """The convolution of maps, in their precision."""
    found = functional.conv2d(maps.permute(0, 3, 1, 2), weights, None, stride, weights.shape[-1] // 2)
    return found.permute(0, 2, 3, 1).contiguous()


def gradient_of_maps(upstream: Tensor, maps: Tensor, weights: Tensor, stride: int) -> Tensor:
    """The gradient of what a convolution sees, in the same precision."""
    found, _ = _gradients(upstream, maps, weights, stride, (True, False, False))
    return found.permute(0, 2, 3, 1).contiguous()


def gradient_of_weights(maps: Tensor, upstream: Tensor, weights: Tensor, stride: int) -> Tensor:
    """The gradient of its weights in single precision, rounded to that of the maps before; not of their values."""
    _, found = _gradients(upstream, maps, weights, stride, (False, True, False))
    if weights.shape[-1] == 1:
        return found.float()
    last = found.contiguous(memory_format=torch.channels_last)
    found = torch.empty(weights.shape, device=weights.device)
    _turn(last, found, back=True)
    return found


def _gradients(
    upstream: Tensor, maps: Tensor, weights: Tensor, stride: int, wanted: tuple[bool, bool, bool]
) -> tuple[Tensor, Tensor]:
    padding = weights.shape[-1] // 2
    of_maps, of_weights, _ = torch.ops.aten.convolution_backward(
        upstream.permute(0, 3, 1, 2), maps.permute(0, 3, 1, 2), weights, None,
        (stride, stride), (padding, padding), (1, 1), False, (0, 0), 1, wanted,
    )  # fmt: skip
    return of_maps, of_weights


def _turn(source: Tensor, target: Tensor, back: bool) -> None:
    new, channels, kernel, _ = source.shape
    wide, taps = min(TURNED, power_of_2(channels)), kernel**2
    with on_device(source):
        turn_kernel[(new, -(-channels // wide))](
            source, target, channels, BACK=back, TAPS=taps, HELD_TAPS=power_of_2(taps), WIDE=wide, num_warps=4
        )
