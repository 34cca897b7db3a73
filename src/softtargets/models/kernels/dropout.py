"""Dropout by place in one reading: the masks of `softtargets.models.Dropout`, bit for bit, in 32 bits."""

import triton
import triton.language as tl


@triton.jit
def words_of(place, position, block, each, SLICED: tl.constexpr):
    """The four words of every draw, side by side in two more dimensions.

    `philox_impl` is what `softtargets.randomness.philox` is, for counters and keys of 32 bits: products of two words
    are two instructions, where torch has 64-bit integers only and draws all four words for each number again.
    """
    low, high = (
        (tl.load(place + 0) & 0xFFFFFFFF).to(tl.uint32),
        (tl.load(place + 1) & 0xFFFFFFFF).to(tl.uint32),
    )
    step = (tl.load(place + 2) & 0xFFFFFFFF).to(tl.uint32)
    layer = (tl.load(position) & 0xFFFFFFFF).to(tl.uint32)
    block = block.to(tl.uint32)
    if SLICED:
        block += (tl.load(place + 3) * each).to(tl.uint32)
    zero = block * 0
    first, second, third, fourth = tl.philox_impl(zero + step, block, zero, zero + layer, low, high)
    # Draw q has the words of numbers 4q to 4q + 3.
    return tl.join(tl.join(first, third), tl.join(second, fourth))


@triton.jit
def kept_of(
    place,
    position,
    row,
    least,
    each,
    SLICED: tl.constexpr,
    WIDTH: tl.constexpr,  # a multiple of 4
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Which numbers of some rows of a matrix are kept, (ROWS, WIDE)."""
    block = row[:, None] * (WIDTH // 4) + tl.arange(0, WIDE // 4)[None, :]
    words = words_of(place, position, block, each, SLICED).reshape(ROWS, WIDE)
    return (words >> 8).to(tl.int32) >= least


@triton.jit
def dropout_kernel(
    activations,
    results,
    place,  # two words of a key and a step, int64
    position,  # which dropout of its net this is, int64
    count,  # numbers
    least,  # of a word's upper 24 bits, for a number to be kept
    scale,
    each,  # draws of a row of the batch
    SLICED: tl.constexpr,  # whether place has a fourth number: the rows of the batch before these
    BLOCK: tl.constexpr,  # draws of a program; each gives four words, for four numbers side by side
):
    """Numbers as they come, times the scale or 0."""
    draws = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = words_of(place, position, draws, each, SLICED).reshape(4 * BLOCK)
    places = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    seen = tl.load(activations + places, mask=places < count)
    kept = (words >> 8).to(tl.int32) >= least
    scaled = tl.where(kept, seen.to(tl.float32) * scale, 0.0)
    tl.store(results + places, scaled.to(seen.dtype), mask=places < count)
