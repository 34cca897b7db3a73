"""One position of a Transformer's decoder for all hypotheses of a search: what lies between the matrix products."""

import triton
import triton.language as tl


@triton.jit
def embed_kernel(
    table,  # (vocabulary, WIDTH)
    waves,  # (positions, WIDTH): sines and cosines
    tokens,  # (rows,)
    place,  # (1,)
    states,  # (rows, WIDTH) in single precision, written
    low,  # the same for the next product, written
    factor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least the width
):
    """Each row its token's vector, times a factor, with the waves of its place."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < WIDTH
    vector = tl.load(table + tl.load(tokens + row) * WIDTH + column, mask=there, other=0.0).to(tl.float32)
    wave = tl.load(waves + tl.load(place) * WIDTH + column, mask=there, other=0.0)
    placed = vector * factor + wave
    tl.store(states + row * WIDTH + column, placed, mask=there)
    tl.store(low + row * WIDTH + column, placed.to(low.dtype.element_ty), mask=there)


@triton.jit
def sum_norm_kernel(
    states,  # (rows, WIDTH) in single precision, written
    added,  # (rows, WIDTH)
    weight,  # (WIDTH,)
    bias,  # (WIDTH,)
    low,  # (rows, WIDTH), what the next product takes, written
    rows,
    eps,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least the width
    ROWS: tl.constexpr,  # of one program
    ADDS: tl.constexpr,  # whether there is something to add
    POST: tl.constexpr,  # whether the states are `low` as well
):
    """states + added, and the same normalised: norms behind the sums keep that, norms in front of layers the sum."""
    row = (tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = column < WIDTH
    there = (row < rows) & inside
    place = row * WIDTH + column
    total = tl.load(states + place, mask=there, other=0.0)
    if ADDS:
        total += tl.load(added + place, mask=there, other=0.0).to(tl.float32)
    centred = tl.where(inside, total - tl.sum(total, 1)[:, None] / WIDTH, 0.0)
    variance = tl.sum(centred * centred, 1)[:, None] / WIDTH
    scale = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    normed = centred / tl.sqrt(variance + eps) * scale + shift
    if POST:
        tl.store(states + place, normed, mask=there)
    elif ADDS:
        tl.store(states + place, total, mask=there)
    tl.store(low + place, normed.to(low.dtype.element_ty), mask=there)


@triton.jit
def own_attention_kernel(
    projected,  # (inputs * BEAMS, 3 * HEADS * SIZE): queries, keys and values of this position
    keys,  # (inputs, HEADS, CAPACITY, BEAMS, SIZE), written at the place
    values,
    line,  # (inputs, BEAMS, CAPACITY, BEAMS): what before this position is whose past
    place,  # (1,)
    found,  # (inputs * BEAMS, HEADS * SIZE), written
    scale,
    CAPACITY: tl.constexpr,
    BEAMS: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,  # a power of 2, at least 16 and the beams
    COLUMNS: tl.constexpr,  # a power of 2, at least 16 and the size
    BLOCK: tl.constexpr,  # keys that are looked at at a time
    PRECISION: tl.constexpr,  # of products of single precision
):
    """The hypotheses of one input look, with one head, at their own past and at themselves.

    All of them are asked about all that the hypotheses of the input keep, and what is not theirs is masked: products
    of tiles are quicker than following each one's past.
    """
    example, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    now = tl.load(place).to(tl.int32)
    beam, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    there = (beam < BEAMS)[:, None] & (column < SIZE)[None, :]
    width = HEADS * SIZE
    row = example * BEAMS + beam
    source = projected + row[:, None] * (3 * width) + head * SIZE + column[None, :]
    query = tl.load(source, mask=there, other=0.0)
    key = tl.load(source + width, mask=there, other=0.0)
    value = tl.load(source + 2 * width, mask=there, other=0.0)
    kept = (example * HEADS + head) * CAPACITY * BEAMS * SIZE
    own = kept + (now * BEAMS + beam)[:, None] * SIZE + column[None, :]
    tl.store(keys + own, key, mask=there)
    tl.store(values + own, value, mask=there)
    # Itself first, so that there is something to compare with.
    largest = tl.sum(query.to(tl.float32) * key.to(tl.float32), 1) * scale
    total = tl.full((ROWS,), 1.0, tl.float32)
    mixed = value.to(tl.float32)
    past = now * BEAMS
    for begin in range(0, past, BLOCK):
        which = begin + tl.arange(0, BLOCK)
        theirs = tl.load(
            line + row[:, None] * (CAPACITY * BEAMS) + which[None, :],
            mask=(beam < BEAMS)[:, None] & (which < past)[None, :],
            other=0,
        )
        # Most hypotheses of long ago have no descendants; theirs is not read.
        tile = (tl.max(theirs, 0) != 0)[:, None] & (column < SIZE)[None, :]
        offsets = kept + which[:, None] * SIZE + column[None, :]
        seen_keys = tl.load(keys + offsets, mask=tile, other=0.0)
        seen_values = tl.load(values + offsets, mask=tile, other=0.0)
        scores = tl.dot(query, tl.trans(seen_keys), input_precision=PRECISION) * scale
        scores = tl.where(theirs != 0, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        share = tl.exp(scores - new[:, None])
        fade = tl.exp(largest - new)
        total = total * fade + tl.sum(share, 1)
        mixed = mixed * fade[:, None] + tl.dot(
            share.to(seen_values.dtype), seen_values, input_precision=PRECISION
        )
        largest = new
    result = (mixed / total[:, None]).to(found.dtype.element_ty)
    tl.store(found + row[:, None] * width + head * SIZE + column[None, :], result, mask=there)


@triton.jit
def cross_attention_kernel(
    queries,  # (inputs * BEAMS, HEADS * SIZE)
    keys,  # (inputs, HEADS, length, SIZE)
    values,
    seen,  # (inputs, length): which count
    found,  # (inputs * BEAMS, HEADS * SIZE), written
    length,
    scale,
    BEAMS: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
    WHOLE: tl.constexpr,  # a power of 2, at least the length
    PRECISION: tl.constexpr,
):
    """The hypotheses of one input look, with one head, at its source, of which at least one position counts."""
    example, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    beam, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    there = (beam < BEAMS)[:, None] & (column < SIZE)[None, :]
    width = HEADS * SIZE
    row = example * BEAMS + beam
    query = tl.load(queries + row[:, None] * width + head * SIZE + column[None, :], mask=there, other=0.0)
    kept = (example * HEADS + head) * length * SIZE
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    mixed = tl.zeros((ROWS, COLUMNS), tl.float32)
    every = tl.arange(0, WHOLE)
    counted = tl.load(seen + example * length + every, mask=every < length, other=0) != 0
    last = tl.max(tl.where(counted, every + 1, 0), 0)  # most sources are shorter than the longest
    for begin in range(0, last, BLOCK):
        which = begin + tl.arange(0, BLOCK)
        counts = tl.load(seen + example * length + which, mask=which < length, other=0) != 0
        tile = counts[:, None] & (column < SIZE)[None, :]
        offsets = kept + which[:, None] * SIZE + column[None, :]
        seen_keys = tl.load(keys + offsets, mask=tile, other=0.0)
        seen_values = tl.load(values + offsets, mask=tile, other=0.0)
        scores = tl.dot(query, tl.trans(seen_keys), input_precision=PRECISION) * scale
        scores = tl.where(counts[None, :], scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        # Nothing has counted so far: compared with anything finite it is nothing.
        against = tl.where(new == -float("inf"), 0.0, new)
        share = tl.exp(scores - against[:, None])
        fade = tl.exp(largest - against)
        total = total * fade + tl.sum(share, 1)
        mixed = mixed * fade[:, None] + tl.dot(
            share.to(seen_values.dtype), seen_values, input_precision=PRECISION
        )
        largest = new
    result = (mixed / total[:, None]).to(found.dtype.element_ty)
    tl.store(found + row[:, None] * width + head * SIZE + column[None, :], result, mask=there)
