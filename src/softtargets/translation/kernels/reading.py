"""Sources that lie one behind the other, without padding, read by a Transformer's encoder: all but the products."""

import triton
import triton.language as tl


@triton.jit
def embed_sources_kernel(
    table,  # (vocabulary, WIDTH)
    waves,  # (length, WIDTH): sines and cosines
    tokens,  # (positions,)
    slots,  # (positions,): row * length + place within it, of each
    states,  # (positions, WIDTH) in single precision, written
    low,  # the same for the next product, written
    length,
    factor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least the width
):
    """Each position its token's vector, times a factor, with the waves of its place; what fills up is read too."""
    position = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < WIDTH
    token = tl.load(tokens + position).to(tl.int64)
    place = tl.maximum(tl.load(slots + position), 0) % length
    vector = tl.load(table + token * WIDTH + column, mask=there, other=0.0).to(tl.float32)
    placed = vector * factor + tl.load(waves + place * WIDTH + column, mask=there, other=0.0)
    tl.store(states + position * WIDTH + column, placed, mask=there)
    tl.store(low + position * WIDTH + column, placed.to(low.dtype.element_ty), mask=there)


@triton.jit
def source_attention_kernel(
    projected,  # (positions, 3 * HEADS * SIZE): queries, keys and values
    starts,  # (inputs,): where each begins
    lengths,  # (inputs,)
    found,  # (positions, HEADS * SIZE), written
    scale,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,  # queries of one program
    COLUMNS: tl.constexpr,  # a power of 2, at least the size
    BLOCK: tl.constexpr,  # keys that are looked at at a time
    PRECISION: tl.constexpr,
):
    """Some positions of one input look, with one head, at all of it."""
    example, head = tl.program_id(0), tl.program_id(1)
    first = tl.program_id(2) * ROWS
    length = tl.load(lengths + example)
    if first < length:
        begins = tl.load(starts + example).to(tl.int64)
        width = HEADS * SIZE
        row, column = first + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
        there = (row < length)[:, None] & (column < SIZE)[None, :]
        own = (begins + row)[:, None]
        query = tl.load(projected + own * (3 * width) + head * SIZE + column[None, :], mask=there, other=0.0)
        largest = tl.full((ROWS,), -float("inf"), tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        mixed = tl.zeros((ROWS, COLUMNS), tl.float32)
        for begin in range(0, length, BLOCK):
            which = begin + tl.arange(0, BLOCK)
            counts = which < length
            tile = counts[:, None] & (column < SIZE)[None, :]
            keys = (
                projected + (begins + which)[:, None] * (3 * width) + (width + head * SIZE) + column[None, :]
            )
            seen_keys = tl.load(keys, mask=tile, other=0.0)
            seen_values = tl.load(keys + width, mask=tile, other=0.0)
            scores = tl.dot(query, tl.trans(seen_keys), input_precision=PRECISION) * scale
            scores = tl.where(counts[None, :], scores, -float("inf"))
            new = tl.maximum(largest, tl.max(scores, 1))  # finite: the first of every block counts
            share = tl.exp(scores - new[:, None])
            fade = tl.exp(largest - new)
            total = total * fade + tl.sum(share, 1)
            mixed = mixed * fade[:, None] + tl.dot(
                share.to(seen_values.dtype), seen_values, input_precision=PRECISION
            )
            largest = new
        result = (mixed / total[:, None]).to(found.dtype.element_ty)
        tl.store(found + own * width + head * SIZE + column[None, :], result, mask=there)


@triton.jit
def remember_kernel(
    remembered,  # (positions, 2 * HEADS * SIZE): keys and values of a decoder's layer
    slots,  # (positions,): row * length + place within it, below 0 for what fills up
    keys,  # (inputs, HEADS, length, SIZE), written
    values,
    length,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least HEADS * SIZE
):
    """Each position to where a search looks for it."""
    position = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + position).to(tl.int64)
    if slot >= 0:
        width = HEADS * SIZE
        column = tl.arange(0, BLOCK)
        there = column < width
        example, place = slot // length, slot % length
        to = ((example * HEADS + column // SIZE) * length + place) * SIZE + column % SIZE
        source = remembered + position * (2 * width) + column
        tl.store(keys + to, tl.load(source, mask=there), mask=there)
        tl.store(values + to, tl.load(source + width, mask=there), mask=there)
