"""Convolutions of many nets at a time, as products of matrices that are never written out.

Maps are (runs, images, height, width, channels), one run after another, so that the channels of a place are read in one
go. A row is a place of a result, a column one of its channels; the products go over the taps of the kernel and the
channels under each tap. Every program works for one run and always in the same order: what a run gets depends neither
on what the others hold nor on how many there are.
"""

import triton
import triton.language as tl

from softtargets.models.kernels.batch_norm import gradient_sums, is_open, normed, tile_sums

# Further outside of a map than any tap reaches.
OUTSIDE = tl.constexpr(1 << 20)


@triton.jit
def corner(
    row, rows, NEW_HEIGHT: tl.constexpr, NEW_WIDTH: tl.constexpr, STRIDE: tl.constexpr, LOW: tl.constexpr
):
    """The image of each row and where in it the first tap looks, LOW before its place; past the last row nowhere."""
    image, place = row // (NEW_HEIGHT * NEW_WIDTH), row % (NEW_HEIGHT * NEW_WIDTH)
    y = tl.where(row < rows, place // NEW_WIDTH * STRIDE - LOW, OUTSIDE)
    return image, y, place % NEW_WIDTH * STRIDE - LOW


@triton.jit
def direction(tap, KERNEL: tl.constexpr, BACKWARDS: tl.constexpr):
    """How far down and to the right of the corner a tap looks."""
    i, j = tap // KERNEL, tap % KERNEL
    if BACKWARDS:
        i, j = KERNEL - 1 - i, KERNEL - 1 - j
    return i, j


@triton.jit
def read(
    maps,
    image,
    y,
    x,
    channel,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    APART: tl.constexpr,
):
    """What is at places (y, x) of maps, 0 outside; of places that are APART only every so many-th is there."""
    if APART == 1:
        # A negative number, read without its sign, is a large one.
        there = (y.to(tl.uint32) < HEIGHT) & (x.to(tl.uint32) < WIDTH)
        place = image * (HEIGHT * WIDTH) + (y * WIDTH + x)
    else:
        there = (y >= 0) & (x >= 0) & (y < HEIGHT * APART) & (x < WIDTH * APART)
        there = there & (y % APART == 0) & (x % APART == 0)
        place = image * (HEIGHT * WIDTH) + (y // APART * WIDTH + x // APART)
    return tl.load(maps + (place * CHANNELS + channel), mask=there, other=0.0)


@triton.jit
def written(
    row,
    column,
    NEW_HEIGHT: tl.constexpr,
    NEW_WIDTH: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    FOLD: tl.constexpr,
):
    """Where results lie, and the channel of each column.

    With FOLD a row is a square of FOLD x FOLD places, and the columns are the channels of one place after another: the
    same convolution with fewer, wider rows, since neighbours see nearly the same (`lay_kernel` makes such weights).
    """
    if FOLD == 1:
        return row[:, None] * NEW_CHANNELS + column[None, :], column
    CHANNELS: tl.constexpr = NEW_CHANNELS // (FOLD * FOLD)
    part, channel = column // CHANNELS, column % CHANNELS
    image, place = row // (NEW_HEIGHT * NEW_WIDTH), row % (NEW_HEIGHT * NEW_WIDTH)
    y = (place // NEW_WIDTH * FOLD)[:, None] + (part // FOLD)[None, :]
    x = (place % NEW_WIDTH * FOLD)[:, None] + (part % FOLD)[None, :]
    place = (image * (FOLD * NEW_HEIGHT))[:, None] + y
    return (place * (FOLD * NEW_WIDTH) + x) * CHANNELS + channel[None, :], channel


@triton.jit
def convolution_kernel(
    maps,
    weights,
    bias,  # (runs, new channels), added at every place; or None
    added,  # of one run: maps like the results, added to them, with `added_norm` after that norm; or None
    added_norm,
    before,  # of one run: maps like the results, of whose `norm` and ReLU the gradient goes on; or None
    norm,
    sums,  # of one run: (tiles, places of a square, 2, channels) of the results, for their norm or `norm`; or None
    results,
    rows,  # of a run
    HEIGHT: tl.constexpr,  # of the maps read
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEW_HEIGHT: tl.constexpr,  # of the maps written
    NEW_WIDTH: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    BACKWARDS: tl.constexpr,  # the gradient with respect to the maps of such a convolution
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
    FOLD: tl.constexpr = 1,  # see `written`
):
    """Results (runs, images, new height, new width, new channels); weights are (runs, taps, channels, new channels)."""
    DEEP: tl.constexpr = KERNEL * KERNEL * CHANNELS
    # A gradient looks back through the taps, the last one first, at the places that have seen this one; with a stride
    # these lie apart.
    LOW: tl.constexpr = KERNEL - 1 - PADDING if BACKWARDS else PADDING
    STEP: tl.constexpr = 1 if BACKWARDS else STRIDE
    APART: tl.constexpr = STRIDE if BACKWARDS else 1
    tiles = tl.cdiv(rows, ROWS)
    run = (tl.program_id(0) // tiles).to(tl.int64)
    row = (tl.program_id(0) % tiles) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    maps += run * (rows // (NEW_HEIGHT * NEW_WIDTH)) * (HEIGHT * WIDTH * CHANNELS)
    weights += run * (DEEP * NEW_CHANNELS)
    results += run * rows * NEW_CHANNELS
    image, y, x = corner(row, rows, NEW_HEIGHT, NEW_WIDTH, STEP, LOW)
    image, y, x = image[:, None], y[:, None], x[:, None]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, DEEP, DEPTH):
        deep = start + tl.arange(0, DEPTH)
        if CHANNELS % DEPTH == 0:  # one tap at a time: whether it is inside is asked once for a row
            i, j = direction(start // CHANNELS, KERNEL, BACKWARDS)
            channel = (tl.multiple_of(start % CHANNELS, DEPTH) + tl.arange(0, DEPTH))[None, :]
            known = column[None, :] < NEW_CHANNELS
        else:
            i, j = direction((deep // CHANNELS)[None, :], KERNEL, BACKWARDS)
            i = tl.where((deep < DEEP)[None, :], i, 2 * OUTSIDE)
            channel = (deep % CHANNELS)[None, :]
            known = (deep < DEEP)[:, None] & (column < NEW_CHANNELS)[None, :]
        left = read(maps, image, y + i, x + j, channel, HEIGHT, WIDTH, CHANNELS, APART)
        right = tl.load(weights + (deep[:, None] * NEW_CHANNELS + column[None, :]), mask=known, other=0.0)
        total = tl.dot(left, right, total, input_precision=PRECISION)
    if bias is not None:
        known = column < NEW_CHANNELS
        total += tl.load(bias + run * NEW_CHANNELS + column, mask=known, other=0.0).to(tl.float32)[None, :]
    target, channel = written(row, column, NEW_HEIGHT, NEW_WIDTH, NEW_CHANNELS, FOLD)
    OUT: tl.constexpr = NEW_CHANNELS // (FOLD * FOLD)
    known = column < NEW_CHANNELS
    there = (row < rows)[:, None] & known[None, :]
    if added is not None:
        more = tl.load(added + target, mask=there, other=0.0).to(tl.float32)
        if added_norm is not None:
            more = normed(more, added_norm, channel, known, OUT)
        total += more
    if before is not None:
        seen = tl.load(before + target, mask=there, other=0.0).to(tl.float32)
        total = tl.where(is_open(seen, norm, channel, known, OUT), total, 0.0)
    rounded = total.to(results.dtype.element_ty)
    tl.store(results + target, rounded, mask=there)
    if sums is not None:
        place = tl.program_id(0) % tiles * (FOLD * FOLD) + column // OUT
        values = tl.where(there, rounded.to(tl.float32), 0.0)
        if before is not None:
            first, second = gradient_sums(values, seen, norm, channel, known, OUT)
        else:
            first, second = tile_sums(values, there, row, rows)
        tl.store(sums + (place * (2 * OUT) + channel), first, mask=known)
        tl.store(sums + (place * (2 * OUT) + OUT + channel), second, mask=known)


@triton.jit(do_not_specialize=["parts"])  # the code is the same whatever it is a multiple of
def weight_gradient_kernel(
    maps,
    upstream,
    partials,
    bias_partials,  # (runs, parts, new channels): sums of what comes from above; or None
    rows,
    parts,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    CHANNELS: tl.constexpr,
    NEW_HEIGHT: tl.constexpr,
    NEW_WIDTH: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    KERNEL: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    PART: tl.constexpr,  # rows of a part, a multiple of ROWS
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
    FOLD: tl.constexpr = 1,
):
    """Sums over one part of the rows each: partials (runs, parts, taps * channels, new channels)."""
    DEEP: tl.constexpr = KERNEL * KERNEL * CHANNELS
    run = (tl.program_id(0) // parts).to(tl.int64)
    part = tl.program_id(0) % parts
    column = tl.program_id(2) * COLUMNS + tl.arange(0, COLUMNS)
    upstream += run * rows * NEW_CHANNELS
    if bias_partials is not None:  # by programs of their own, which do not wait for products
        if tl.program_id(1) * DEPTH >= DEEP:
            found = tl.zeros((COLUMNS,), tl.float32)
            for start in range(0, PART, ROWS):
                row = part * PART + start + tl.arange(0, ROWS)
                there = (row < rows)[:, None] & (column < NEW_CHANNELS)[None, :]
                source = row[:, None] * NEW_CHANNELS + column[None, :]
                found += tl.sum(tl.load(upstream + source, mask=there, other=0.0).to(tl.float32), 0)
            bias_partials += (run * parts + part) * NEW_CHANNELS
            tl.store(bias_partials + column, found, mask=column < NEW_CHANNELS)
            return
    deep = tl.program_id(1) * DEPTH + tl.arange(0, DEPTH)
    maps += run * (rows // (NEW_HEIGHT * NEW_WIDTH)) * (HEIGHT * WIDTH * CHANNELS)
    if CHANNELS % DEPTH == 0:
        i, j = direction(tl.program_id(1) // (CHANNELS // DEPTH), KERNEL, False)
        first = tl.multiple_of(tl.program_id(1) % (CHANNELS // DEPTH) * DEPTH, DEPTH)
        channel = (first + tl.arange(0, DEPTH))[None, :]
    else:
        i, j = direction((deep // CHANNELS)[None, :], KERNEL, False)
        i = tl.where((deep < DEEP)[None, :], i, 2 * OUTSIDE)
        channel = (deep % CHANNELS)[None, :]
    total = tl.zeros((DEPTH, COLUMNS), tl.float32)
    for start in range(0, PART, ROWS):
        row = part * PART + start + tl.arange(0, ROWS)
        image, y, x = corner(row, rows, NEW_HEIGHT, NEW_WIDTH, STRIDE, PADDING)
        left = read(maps, image[:, None], y[:, None] + i, x[:, None] + j, channel, HEIGHT, WIDTH, CHANNELS, 1)
        there = (row < rows)[:, None] & (column < NEW_CHANNELS)[None, :]
        source, _ = written(row, column, NEW_HEIGHT, NEW_WIDTH, NEW_CHANNELS, FOLD)
        right = tl.load(upstream + source, mask=there, other=0.0)
        total = tl.dot(tl.trans(left), right, total, input_precision=PRECISION)
    partials += (run * parts + part) * (DEEP * NEW_CHANNELS)
    target = deep[:, None] * NEW_CHANNELS + column[None, :]
    tl.store(partials + target, total, mask=(deep < DEEP)[:, None] & (column < NEW_CHANNELS)[None, :])


@triton.jit
def part_sum_kernel(
    partials,
    gradients,
    parts,
    CHANNELS: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_A_TIME: tl.constexpr,
):
    """All parts together, always in the same order, as gradients (runs, new channels, channels, taps)."""
    SIZE: tl.constexpr = TAPS * CHANNELS * NEW_CHANNELS
    run = tl.program_id(0).to(tl.int64)
    element = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = element < SIZE
    partials += run * parts * SIZE
    total = tl.zeros((AT_A_TIME, BLOCK), tl.float32)
    for start in range(0, parts, AT_A_TIME):
        part = start + tl.arange(0, AT_A_TIME)
        source = part[:, None] * SIZE + element[None, :]
        total += tl.load(partials + source, mask=(part < parts)[:, None] & inside[None, :], other=0.0)
    new, deep = element % NEW_CHANNELS, element // NEW_CHANNELS
    channel, tap = deep % CHANNELS, deep // CHANNELS
    target = (new * CHANNELS + channel) * TAPS + tap
    tl.store(gradients + run * SIZE + target, tl.sum(total, 0), mask=inside)


@triton.jit
def folded_part_sum_kernel(
    partials,
    gradients,
    parts,
    CHANNELS: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    KERNEL: tl.constexpr,
    FOLD: tl.constexpr,
    BLOCK: tl.constexpr,
    AT_A_TIME: tl.constexpr,
):
    """As `part_sum_kernel`, of one run and of partials by folded rows: a tap is seen from every place of a square."""
    SIDE: tl.constexpr = KERNEL + FOLD - 1
    WIDE: tl.constexpr = FOLD * FOLD * NEW_CHANNELS
    SIZE: tl.constexpr = SIDE * SIDE * CHANNELS * WIDE
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < KERNEL * KERNEL * CHANNELS * NEW_CHANNELS
    new, deep = element % NEW_CHANNELS, element // NEW_CHANNELS
    channel, tap = deep % CHANNELS, deep // CHANNELS
    total = tl.zeros((AT_A_TIME, BLOCK), tl.float32)
    for place in tl.static_range(FOLD * FOLD):
        y, x = tap // KERNEL + place // FOLD, tap % KERNEL + place % FOLD
        source = ((y * SIDE + x) * CHANNELS + channel) * WIDE + place * NEW_CHANNELS + new
        for start in range(0, parts, AT_A_TIME):
            part = start + tl.arange(0, AT_A_TIME)
            there = (part < parts)[:, None] & inside[None, :]
            total += tl.load(partials + (part[:, None] * SIZE + source[None, :]), mask=there, other=0.0)
    target = (new * CHANNELS + channel) * (KERNEL * KERNEL) + tap
    tl.store(gradients + target, tl.sum(total, 0), mask=inside)
