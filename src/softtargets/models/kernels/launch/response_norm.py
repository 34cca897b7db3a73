"""Local response normalisation, and its gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.models.kernels.launch.placing import on_device, power_of_2
from softtargets.models.kernels.response_norm import norm_gradient_kernel, norm_kernel

# Places whose channels one program normalises.
NORM_ROWS = 64


def normalise(maps: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    """Local response normalisation over the last dimension of a dense tensor."""
    results = torch.empty_like(maps)
    _launch(norm_kernel, (maps, results), (bias, alpha, beta), radius)
    return results


def gradient_of_norm(
    maps: Tensor, upstream: Tensor, radius: int, bias: float, alpha: float, beta: float
) -> Tensor:
    """The gradient of `normalise`."""
    gradients = torch.empty_like(maps)
    _launch(norm_gradient_kernel, (maps, upstream, gradients), (bias, alpha, beta), radius)
    return gradients


def _launch(kernel: Any, tensors: tuple[Tensor, ...], numbers: tuple[float, ...], radius: int) -> None:
    maps = tensors[0]
    channels = maps.shape[-1]
    rows = maps.numel() // channels
    with on_device(maps):
        kernel[(-(-rows // NORM_ROWS),)](
            *tensors,
            rows,
            *numbers,
            CHANNELS=channels,
            RADIUS=radius,
            ROWS=NORM_ROWS,
            WIDE=max(16, power_of_2(channels)),
            SPLIT=maps.dtype == torch.bfloat16,
            num_warps=4,
        )
