"""Local response normalisation: each program holds whole rows of channels, and sums windows by a product."""

import triton
import triton.language as tl


@triton.jit
def held(rows, CHANNELS: tl.constexpr, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """What this program holds: offsets (ROWS, WIDE) and which of them are there."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, WIDE)
    offsets = row[:, None] * CHANNELS + channel[None, :]
    return offsets, (row < rows)[:, None] & (channel < CHANNELS)[None, :]


@triton.jit
def window_sums(values, RADIUS: tl.constexpr, WIDE: tl.constexpr, SPLIT: tl.constexpr):
    """Of every channel and its neighbours: a product with a band of ones.

    SPLIT adds up what bf16 holds of the values and what it holds of the rest: 16 bits of each, and fast.
    """
    channel = tl.arange(0, WIDE)
    band = tl.abs(channel[:, None] - channel[None, :]) <= RADIUS
    if SPLIT:
        high = values.to(tl.bfloat16)
        low = (values - high.to(tl.float32)).to(tl.bfloat16)
        ones = band.to(tl.bfloat16)
        sums = tl.dot(low, ones, tl.dot(high, ones))
    else:
        sums = tl.dot(values, band.to(tl.float32), input_precision="ieee")
    return sums


@triton.jit
def norm_kernel(
    maps,
    upstream,  # what comes from above, where the gradient is wanted; else None
    results,
    rows,
    bias,
    alpha,
    beta,
    CHANNELS: tl.constexpr,
    RADIUS: tl.constexpr,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """x b^-beta with b = bias + alpha * window sum of x^2.

    The gradient is g b^-beta - 2 alpha beta x * window sum of g x b^(-beta - 1).
    """
    offsets, there = held(rows, CHANNELS, ROWS, WIDE)
    x = tl.load(maps + offsets, mask=there, other=0.0).to(tl.float32)
    g = x
    if upstream is not None:
        g = tl.load(upstream + offsets, mask=there, other=0.0).to(tl.float32)
    base = bias + alpha * window_sums(x * x, RADIUS, WIDE, SPLIT)
    power = tl.exp2(-beta * tl.log2(base))
    y = g * power
    if upstream is not None:
        pulled = window_sums(g * x * power / base, RADIUS, WIDE, SPLIT)
        y -= (2 * alpha * beta) * x * pulled
    tl.store(results + offsets, y.to(results.dtype.element_ty), mask=there)
