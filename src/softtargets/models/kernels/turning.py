"""Weights of convolutions between the order in which they are learnt and that of NVIDIA's library."""

import triton
import triton.language as tl


@triton.jit
def turn_kernel(
    source,
    target,
    channels,
    BACK: tl.constexpr,
    TAPS: tl.constexpr,
    HELD_TAPS: tl.constexpr,  # a power of 2
    WIDE: tl.constexpr,
):
    """Of (new channels, channels, taps) to (new channels, taps, channels), or BACK, in the precision of the target."""
    channel = (tl.program_id(1) * WIDE + tl.arange(0, WIDE))[:, None]
    tap = tl.arange(0, HELD_TAPS)[None, :]
    there = (channel < channels) & (tap < TAPS)
    begin = tl.program_id(0) * (channels * TAPS)
    learnt, last = begin + channel * TAPS + tap, begin + tap * channels + channel
    if BACK:
        learnt, last = last, learnt
    values = tl.load(source + learnt, mask=there, other=0.0)
    tl.store(target + last, values.to(target.dtype.element_ty), mask=there)
