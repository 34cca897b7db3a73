"""Logits of all tokens together with what the likeliest are found by, and these: long rows are not read again."""

import triton
import triton.language as tl

from softtargets.translation.kernels.top import keys_of


@triton.jit
def head_kernel(
    states,  # (rows, WIDTH)
    templates,  # (VOCABULARY, WIDTH)
    bias,  # (VOCABULARY,)
    logits,  # (rows, VOCABULARY), written
    maxima,  # (rows, CHUNKS), written: the largest of each chunk of tokens
    totals,  # (rows, CHUNKS), written: the sum of exp(logit - the largest) of each
    rows,
    temperature,
    WIDTH: tl.constexpr,
    VOCABULARY: tl.constexpr,
    CHUNKS: tl.constexpr,
    ROWS: tl.constexpr,  # of a program
    CHUNK: tl.constexpr,  # tokens of a program
    DEPTH: tl.constexpr,  # multiplied at a time
    SCALED: tl.constexpr,  # whether the temperature is not 1
    PRECISION: tl.constexpr,
):
    """(states templates^T + bias) / temperature; one program makes some rows of one chunk."""
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    token = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    depth = tl.arange(0, DEPTH)
    found = tl.zeros((ROWS, CHUNK), tl.float32)
    for begin in range(0, WIDTH, DEPTH):
        inside = begin + depth < WIDTH
        left = tl.load(
            states + row[:, None] * WIDTH + begin + depth[None, :],
            mask=(row < rows)[:, None] & inside[None, :],
            other=0.0,
        )
        right = tl.load(
            templates + token[None, :] * WIDTH + begin + depth[:, None],
            mask=(token < VOCABULARY)[None, :] & inside[:, None],
            other=0.0,
        )
        found = tl.dot(left, right, found, input_precision=PRECISION)
    there = token < VOCABULARY
    found += tl.load(bias + token, mask=there, other=0.0).to(tl.float32)[None, :]
    if SCALED:
        found = tl.div_rn(found, tl.zeros_like(found) + temperature)
    place = row.to(tl.int64)[:, None] * VOCABULARY + token[None, :]
    tl.store(logits + place, found, mask=(row < rows)[:, None] & there[None, :])
    found = tl.where(there[None, :], found, -float("inf"))
    largest = tl.max(found, 1)
    # Where all is impossible, nothing is the sum.
    against = tl.where(largest == -float("inf"), 0.0, largest)
    total = tl.sum(tl.exp(found - against[:, None]), 1)
    chunk = row.to(tl.int64) * CHUNKS + tl.program_id(0)
    tl.store(maxima + chunk, largest, mask=row < rows)
    tl.store(totals + chunk, total, mask=row < rows)


@triton.jit
def choose_kernel(
    logits,
    maxima,
    totals,
    log_probs,  # (rows, COUNT), written
    tokens,
    VOCABULARY: tl.constexpr,
    CHUNKS: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least the chunks
    COUNT: tl.constexpr,  # how many of each row
    SEARCHED: tl.constexpr,  # how many chunks are searched, a power of 2, at least COUNT
):
    """Of what `head_kernel` has made the likeliest tokens, as `softtargets.translation.kernels.top.top_kernel`.

    The chunks with the largest maxima hold all that can be among the best. If there are fewer, all are searched.
    """
    lowest = -0x7FFFFFFFFFFFFFFF
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.arange(0, BLOCK)
    largest_of = tl.load(maxima + row * CHUNKS + chunk, mask=chunk < CHUNKS, other=-float("inf"))
    total_of = tl.load(totals + row * CHUNKS + chunk, mask=chunk < CHUNKS, other=0.0)
    largest = tl.max(largest_of, 0)
    # NaN is no maximum, but it is in the sums.
    total = tl.log(tl.sum(total_of * tl.exp(largest_of - largest), 0))
    chunks = tl.where(chunk < CHUNKS, keys_of(largest_of - largest - total, chunk), lowest)
    place = tl.arange(0, SEARCHED)
    chosen = tl.full((SEARCHED,), BLOCK, tl.int32)
    # No `min`: what Triton 3.5 makes of it is no constant.
    for number in tl.static_range(COUNT if COUNT < CHUNKS else CHUNKS):
        best = tl.max(chunks, 0)
        chunks = tl.where(chunks == best, lowest, chunks)
        chosen = tl.where(place == number, 0x7FFFFFFF - (best & 0xFFFFFFFF).to(tl.int32), chosen)
    columns = chosen[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    there = columns < VOCABULARY
    seen = tl.load(logits + row * VOCABULARY + columns, mask=there, other=-float("inf"))
    keys = tl.where(there, keys_of(seen - largest - total, columns), lowest)
    for number in tl.static_range(COUNT):
        best = tl.max(tl.max(keys, 1), 0)
        keys = tl.where(keys == best, lowest, keys)
        found = (best >> 32).to(tl.int32)
        found = found ^ ((found >> 31) & 0x7FFFFFFF)
        tl.store(log_probs + row * COUNT + number, found.to(tl.float32, bitcast=True))
        tl.store(tokens + row * COUNT + number, 0x7FFFFFFF - (best & 0xFFFFFFFF))
