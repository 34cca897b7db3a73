"""Maxima over windows of maps whose channels come last; one program for a stretch of one image."""

import triton
import triton.language as tl


@triton.jit
def stretch(HEIGHT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """The numbers of an image that this program is for: which, whether there, and row, column and channel of each."""
    element = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    place, channel = element // CHANNELS, element % CHANNELS
    return element, element < HEIGHT * WIDTH * CHANNELS, place // WIDTH, place % WIDTH, channel


@triton.jit
def max_pool_kernel(
    maps,
    results,
    winners,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEW_HEIGHT: tl.constexpr,
    NEW_WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The largest number of each window, and which of its places had it first."""
    image = tl.program_id(0).to(tl.int64)
    element, there, y, x, channel = stretch(NEW_HEIGHT, NEW_WIDTH, CHANNELS, BLOCK)
    maps += image * (HEIGHT * WIDTH * CHANNELS)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    winner = tl.zeros((BLOCK,), tl.int32)
    for tap in tl.static_range(KERNEL * KERNEL):
        row, column = y * STRIDE + (tap // KERNEL - TOP), x * STRIDE + (tap % KERNEL - LEFT)
        inside = there & (row >= 0) & (row < HEIGHT) & (column >= 0) & (column < WIDTH)
        source = (row * WIDTH + column) * CHANNELS + channel
        value = tl.load(maps + source, mask=inside, other=float("-inf")).to(tl.float32)
        better = (value > best) | (value != value)  # what is no number wins, and is seen
        best = tl.where(better, value, best)
        winner = tl.where(better, tap, winner)
    target = image * (NEW_HEIGHT * NEW_WIDTH * CHANNELS) + element
    tl.store(results + target, best.to(results.dtype.element_ty), mask=there)
    tl.store(winners + target, winner.to(tl.uint8), mask=there)


@triton.jit
def max_pool_gradient_kernel(
    winners,
    upstream,
    gradients,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEW_HEIGHT: tl.constexpr,
    NEW_WIDTH: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    TOP: tl.constexpr,
    LEFT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Each number gets the gradients of the windows that it won."""
    OVERLAP: tl.constexpr = (KERNEL + STRIDE - 1) // STRIDE
    image = tl.program_id(0).to(tl.int64)
    element, there, y, x, channel = stretch(HEIGHT, WIDTH, CHANNELS, BLOCK)
    first = image * (NEW_HEIGHT * NEW_WIDTH * CHANNELS)
    winners += first
    upstream += first
    total = tl.zeros((BLOCK,), tl.float32)
    for window in tl.static_range(OVERLAP * OVERLAP):
        row, column = (y + TOP) // STRIDE - window // OVERLAP, (x + LEFT) // STRIDE - window % OVERLAP
        i, j = y + TOP - row * STRIDE, x + LEFT - column * STRIDE
        inside = there & (row >= 0) & (row < NEW_HEIGHT) & (column >= 0) & (column < NEW_WIDTH)
        inside = inside & (i < KERNEL) & (j < KERNEL)
        source = (row * NEW_WIDTH + column) * CHANNELS + channel
        winner = tl.load(winners + source, mask=inside, other=255).to(tl.int32)
        gradient = tl.load(upstream + source, mask=inside, other=0.0).to(tl.float32)
        total += tl.where(winner == i * KERNEL + j, gradient, 0.0)
    target = image * (HEIGHT * WIDTH * CHANNELS) + element
    tl.store(gradients + target, total.to(gradients.dtype.element_ty), mask=there)
