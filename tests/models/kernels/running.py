"""Convolutions and blocks by the kernels, and by plain PyTorch in double precision."""

from __future__ import annotations

import math
import os
from copy import deepcopy

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


def check_block_on_a_gpu(layers, fused, before, after, stride, side, images):
    """A fused block is as near to the truth as its layers are, and always the same."""
    maps = torch.randn(images, before, side, side, device="cuda").bfloat16().float()
    upstream = torch.randn(images, after, side // stride, side // stride, device="cuda").bfloat16().float()

    def learnt(net, dtype):
        given = maps.to(dtype, copy=True).requires_grad_()  # or gradients of several calls would add up
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype == torch.float32):
            found = net(given)
        found = found[0] if isinstance(found, tuple) else found
        found.backward(upstream.to(found.dtype))
        return [found.detach(), given.grad, *(weight.grad for weight in net.parameters())]

    expected, plain = (
        learnt(deepcopy(layers).double(), torch.float64),
        learnt(deepcopy(layers), torch.float32),
    )
    first, *others = (learnt(fused(layers), torch.float32) for _ in range(3))
    assert all(torch.equal(one, same) for other in others for one, same in zip(first, other, strict=True))
    # Rounding to bf16 moves inputs of ReLUs across 0, for the layers as well. Of 19 channels the error of one gradient
    # of a norm may be a third larger by chance, so those of all norms count together.
    relative = [
        tuple(float((one.double() - right).norm() / right.norm()) for one in (value, known))
        for value, known, right in zip(first, plain, expected, strict=True)
    ]
    large = [pair for pair, right in zip(relative, expected, strict=True) if right.dim() > 1]
    small = [pair for pair, right in zip(relative, expected, strict=True) if right.dim() == 1]
    for ours, theirs in [*large, tuple(math.hypot(*errors) for errors in zip(*small, strict=True))]:
        assert ours < 1.3 * theirs + 1e-3
