"""Convolutions by the kernels, and by plain PyTorch in double precision."""

from __future__ import annotations

import os

import pytest
import torch
from torch.nn import functional

from softtargets.models.kernels import launch

# Tensors on the CPU are for the interpreter, which is wrong about bfloat16; on a GPU there is test_cuda.
interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)
DTYPES = [torch.float32, torch.float16]

# "chosen" are those that launch picks. The others are for the interpreter, where every block takes ten milliseconds:
# blocks of many taps at a time, and so small ones that a few rows, channels and taps already make several.
TILES = {
    "chosen": None,
    "large": launch.Tiles(64, 64, 128, 1, 1, part=64),
    "small": launch.Tiles(16, 16, 16, 1, 1, part=32),
}


def numbers(*shape, dtype=torch.float32, seed=0, device="cpu"):
    generator = torch.Generator(device).manual_seed(seed)
    return torch.randn(shape, generator=generator, device=device).to(dtype)


def example(runs, images, sides, channels, new_channels, kernel, stride, padding, dtype, **made):
    """Maps, weights and an upstream gradient, then stride and padding."""
    maps = numbers(runs, images, *sides, channels, dtype=dtype, **made)
    weights = numbers(runs, new_channels, channels, kernel, kernel, **made) / (kernel * channels**0.5)
    new = [(side + 2 * padding - kernel) // stride + 1 for side in sides]
    return maps, weights, numbers(runs, images, *new, new_channels, dtype=dtype, **made), stride, padding


def by_kernels(maps, weights, upstream, stride, padding, tiles=None):
    """The results and the gradients of maps and weights."""
    return (
        launch.convolve(maps, weights, stride, padding, tiles),
        launch.gradient_of_maps(upstream, weights, *maps.shape[2:4], stride, padding, tiles),
        launch.gradient_of_weights(maps, upstream, weights.shape[-1], stride, padding, tiles),
    )


def exactly(maps, weights, upstream, stride, padding):
    """The same by torch, from the numbers that the kernels see: weights are rounded first."""
    found = []
    seen = (each.double() for each in (maps, weights.to(maps.dtype), upstream))
    for own, kernel, pulled in zip(*seen, strict=True):
        leaves = own.requires_grad_(), kernel.requires_grad_()
        result = functional.conv2d(own.permute(0, 3, 1, 2), kernel, stride=stride, padding=padding)
        result = result.permute(0, 2, 3, 1)
        found.append((result.detach(), *torch.autograd.grad(result, leaves, pulled)))
    return [torch.stack(each) for each in zip(*found, strict=True)]


def check_convolution(maps, weights, upstream, stride, padding, tiles=None):
    """Off by no more than single precision loses of the sums, and then by the rounding of the result."""
    given = maps, weights, upstream
    found = by_kernels(*given, stride, padding, tiles)
    exact = exactly(*given, stride, padding)
    sizes = exactly(*(each.abs() for each in given), stride, padding)
    assert [each.dtype for each in found] == [maps.dtype, maps.dtype, torch.float32]
    for each, wanted, size in zip(found, exact, sizes, strict=True):
        near(each, wanted, 2e-6 * size)


def near(found, exact, lost):
    """The rounding of `found`, half of a unit in its last place, on top of what was `lost` before."""
    assert found.shape == exact.shape
    kind = torch.finfo(found.dtype)
    rounding = 0.5001 * kind.eps * (exact.abs() + lost) + kind.smallest_normal * kind.eps
    excess = (found.double() - exact).abs() - lost - rounding
    assert excess.max() <= 0, excess.max()
