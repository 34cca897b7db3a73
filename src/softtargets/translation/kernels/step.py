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
def merge_kernel(
    found,  # (rows, WIDTH)
    merge,  # (WIDTH, WIDTH), the product behind attention
    merge_bias,  # (WIDTH,)
    states,  # (rows, WIDTH) in single precision, written
    weight,  # (WIDTH,), of the norm
    bias,  # (WIDTH,)
    low,  # (rows, WIDTH), what the next product takes, written unless it is made here
    ask,  # (WIDTH, WIDTH), the next product
    ask_bias,  # (WIDTH,)
    asked,  # (rows, WIDTH), what it gives, written
    rows,
    eps,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,  # a power of 2, at least the width
    ROWS: tl.constexpr,  # of one program
    DEPTH: tl.constexpr,  # multiplied at a time in the first product, columns at a time of the second
    POST: tl.constexpr,  # whether the states are `low` as well
    ASKS: tl.constexpr,  # whether the next product is made
):
    """`sum_norm_kernel` of a product, with the product in front of it and perhaps that behind it, in one launch."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    column, depth = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    inside = (column < WIDTH)[None, :]
    there = (row < rows) & inside
    place = row * WIDTH + column[None, :]
    before = tl.load(states + place, mask=there, other=0.0)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for begin in range(0, WIDTH, DEPTH):
        part = begin + depth
        left = tl.load(
            found + row * WIDTH + part[None, :], mask=(row < rows) & (part < WIDTH)[None, :], other=0.0
        )
        right = tl.load(
            merge + column[None, :] * WIDTH + part[:, None], mask=inside & (part < WIDTH)[:, None], other=0.0
        )
        total = tl.dot(left, right, total)
    total += before + tl.load(merge_bias + column, mask=column < WIDTH, other=0.0).to(tl.float32)[None, :]
    centred = tl.where(inside, total - tl.sum(total, 1)[:, None] / WIDTH, 0.0)
    variance = tl.sum(centred * centred, 1)[:, None] / WIDTH
    scale = tl.load(weight + column, mask=column < WIDTH, other=0.0).to(tl.float32)[None, :]
    shift = tl.load(bias + column, mask=column < WIDTH, other=0.0).to(tl.float32)[None, :]
    normed = centred / tl.sqrt(variance + eps) * scale + shift
    tl.store(states + place, normed if POST else total, mask=there)
    given = normed.to(low.dtype.element_ty)
    if ASKS:
        for begin in range(0, WIDTH, DEPTH):
            part = begin + depth
            right = tl.load(
                ask + part[None, :] * WIDTH + column[:, None],
                mask=(column < WIDTH)[:, None] & (part < WIDTH)[None, :],
                other=0.0,
            )
            answer = tl.dot(given, right)
            answer += tl.load(ask_bias + part, mask=part < WIDTH, other=0.0).to(tl.float32)[None, :]
            tl.store(
                asked + row * WIDTH + part[None, :],
                answer.to(asked.dtype.element_ty),
                mask=(row < rows) & (part < WIDTH)[None, :],
            )
    else:
        tl.store(low + place, given, mask=there)


@triton.jit
def own_attention_kernel(
    projected,  # (inputs * BEAMS, 3 * HEADS * SIZE): queries, keys and values of this position
    keys,  # (inputs, HEADS, CAPACITY, BEAMS, SIZE), written at the place
    values,
    origins,  # (inputs, BEAMS, CAPACITY): beside which hypothesis each one's past was written
    place,  # (1,)
    found,  # (inputs * BEAMS, HEADS * SIZE), written
    scale,
    CAPACITY: tl.constexpr,
    BEAMS: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,  # a power of 2, at least the size
    BLOCK: tl.constexpr,  # positions that are looked at at a time
):
    """One hypothesis looks, with one head, at its past and at itself.

    A warp for each follows its own line: what descendants have in common is read by all of them, but it is near.
    """
    row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    example, beam = row // BEAMS, row % BEAMS
    # Asked for together with the place, not after it: one wait less of four. What lies beyond the place is not used.
    first = tl.arange(0, BLOCK)
    beside = tl.load(origins + row * CAPACITY + first, mask=first < CAPACITY, other=0)
    now = tl.load(place).to(tl.int32)
    column = tl.arange(0, COLUMNS)
    there = column < SIZE
    width = HEADS * SIZE
    source = projected + row * (3 * width) + head * SIZE + column
    query = tl.load(source, mask=there, other=0.0).to(tl.float32)
    key = tl.load(source + width, mask=there, other=0.0)
    value = tl.load(source + 2 * width, mask=there, other=0.0)
    kept = (example * HEADS + head) * CAPACITY * BEAMS * SIZE
    own = kept + (now * BEAMS + beam) * SIZE + column
    tl.store(keys + own, key, mask=there)
    tl.store(values + own, value, mask=there)
    # Itself first, so that there is something to compare with.
    largest = tl.sum(query * key.to(tl.float32), 0) * scale
    total = 1.0
    mixed = value.to(tl.float32)
    for begin in range(0, now, BLOCK):
        which = begin + tl.arange(0, BLOCK)
        before = which < now
        offsets = kept + (which * BEAMS + beside.to(tl.int32))[:, None] * SIZE + column[None, :]
        tile = before[:, None] & there[None, :]
        seen_keys = tl.load(keys + offsets, mask=tile, other=0.0).to(tl.float32)
        seen_values = tl.load(values + offsets, mask=tile, other=0.0).to(tl.float32)
        following = which + BLOCK
        beside = tl.load(origins + row * CAPACITY + following, mask=following < CAPACITY, other=0)
        scores = tl.sum(seen_keys * query[None, :], 1) * scale
        scores = tl.where(before, scores, -float("inf"))
        new = tl.maximum(largest, tl.max(scores, 0))
        share = tl.exp(scores - new)
        fade = tl.exp(largest - new)
        total = total * fade + tl.sum(share, 0)
        mixed = mixed * fade + tl.sum(share[:, None] * seen_values, 0)
        largest = new
    tl.store(
        found + row * width + head * SIZE + column, (mixed / total).to(found.dtype.element_ty), mask=there
    )


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
