"""Batch normalisation of one net, with the ReLU that follows it, cut up so that it reads maps as seldom as can be.

Maps are rows of channels, (rows, channels). Whoever writes maps that are normalised next leaves sums of its tile of
rows behind (`tile_sums`), so that nobody reads them for their mean and variance; likewise whoever writes the gradient
behind the norm (`gradient_sums`). `norm_kernel` and `norm_gradient_kernel` put the tiles together, always in the same
order.

A norm is four rows of numbers by channel: mean, 1 / standard deviation, and scale and shift, of which the result is
``maps * scale + shift``; a gradient is ``a * upstream + b * maps + c`` with three rows more (`norm_gradient_kernel`).

How many channels there are is no constant of kernels that go over maps: one that is compiled serves nets of all widths.
"""

import triton
import triton.language as tl

# Where in a norm its rows are.
MEAN = tl.constexpr(0)
INVERSE = tl.constexpr(1)
SCALE = tl.constexpr(2)
SHIFT = tl.constexpr(3)
# Numbers that kernels are not compiled anew for: in a shorter batch they may be no multiples of 16 as in others, and
# the code is the same.
COUNTED = ["rows", "tiles"]


@triton.jit
def of_norm(norm, place, channel, known, channels):
    """One row of a norm, for channels that are `known`."""
    return tl.load(norm + place * channels + channel, mask=known, other=0.0)


@triton.jit
def normed(maps, norm, channel, known, channels):
    """What comes out of the norm, in single precision, before the ReLU."""
    scale = of_norm(norm, SCALE, channel, known, channels)
    shift = of_norm(norm, SHIFT, channel, known, channels)
    return maps * scale[None, :] + shift[None, :]


@triton.jit
def is_open(maps, norm, channel, known, channels):
    """Where the ReLU behind the norm lets a gradient through."""
    return normed(maps, norm, channel, known, channels) > 0


@triton.jit
def tile_sums(values, there, row, rows):
    """The sum of a tile's rows by channel, and the sum of squares around the tile's own mean, which loses no digits."""
    count = tl.sum((row < rows).to(tl.float32), 0)
    total = tl.sum(values, 0)  # what is not there is 0
    apart = tl.where(there, values - (total / count)[None, :], 0.0)
    return total, tl.sum(apart * apart, 0)


@triton.jit
def gradient_sums(upstream, maps, norm, channel, known, channels):
    """By channel the sum of a tile's gradients behind the norm, and of those times the maps less their mean."""
    mean = of_norm(norm, MEAN, channel, known, channels)
    return tl.sum(upstream, 0), tl.sum(upstream * (maps - mean[None, :]), 0)


@triton.jit
def held(rows, channels, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """The rows of this program, its channels, where both lie, and which of them are there."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * WIDE + tl.arange(0, WIDE)
    there = (row < rows)[:, None] & (channel < channels)[None, :]
    return row, channel, row.to(tl.int64)[:, None] * channels + channel[None, :], there


@triton.jit(do_not_specialize=COUNTED)
def tile_sum_kernel(maps, sums, rows, channels, ROWS: tl.constexpr, WIDE: tl.constexpr):
    """`tile_sums` of maps that came without: sums (tiles, 2, channels)."""
    row, channel, source, there = held(rows, channels, ROWS, WIDE)
    values = tl.load(maps + source, mask=there, other=0.0).to(tl.float32)
    total, squares = tile_sums(values, there, row, rows)
    sums += tl.program_id(0) * (2 * channels) + channel
    tl.store(sums, total, mask=channel < channels)
    tl.store(sums + channels, squares, mask=channel < channels)


@triton.jit(do_not_specialize=COUNTED)
def gradient_sum_kernel(
    upstream,
    maps,
    norm,
    sums,
    rows,
    channels,
    MASKED: tl.constexpr,  # upstream is the gradient behind the norm's ReLU
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """`gradient_sums` of a gradient behind a norm that came without."""
    _, channel, source, there = held(rows, channels, ROWS, WIDE)
    known = channel < channels
    values = tl.load(upstream + source, mask=there, other=0.0).to(tl.float32)
    seen = tl.load(maps + source, mask=there, other=0.0).to(tl.float32)
    if MASKED:
        values = tl.where(is_open(seen, norm, channel, known, channels), values, 0.0)
    first, second = gradient_sums(values, seen, norm, channel, known, channels)
    sums += tl.program_id(0) * (2 * channels) + channel
    tl.store(sums, first, mask=known)
    tl.store(sums + channels, second, mask=known)


@triton.jit(do_not_specialize=COUNTED)
def end_gradient_kernel(
    upstream,
    more,  # what comes to the same results another way, or None
    results,  # of the ReLU
    maps,
    norm,
    side,  # what was added to norm(maps) was the `side_norm` of these, or None
    side_norm,
    behind,
    sums,
    side_sums,
    rows,
    channels,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """The gradient before the ReLU of relu(norm(maps) + ...), and its `gradient_sums` for one norm or for both."""
    _, channel, source, there = held(rows, channels, ROWS, WIDE)
    known = channel < channels
    total = tl.load(upstream + source, mask=there, other=0.0).to(tl.float32)
    if more is not None:
        total += tl.load(more + source, mask=there, other=0.0).to(tl.float32)
    is_on = tl.load(results + source, mask=there, other=0.0).to(tl.float32) > 0
    rounded = tl.where(is_on, total, 0.0).to(behind.dtype.element_ty)
    tl.store(behind + source, rounded, mask=there)
    values = rounded.to(tl.float32)
    seen = tl.load(maps + source, mask=there, other=0.0).to(tl.float32)
    first, second = gradient_sums(values, seen, norm, channel, known, channels)
    target = tl.program_id(0) * (2 * channels) + channel
    tl.store(sums + target, first, mask=known)
    tl.store(sums + target + channels, second, mask=known)
    if side is not None:
        seen = tl.load(side + source, mask=there, other=0.0).to(tl.float32)
        _, second = gradient_sums(values, seen, side_norm, channel, known, channels)
        tl.store(side_sums + target, first, mask=known)
        tl.store(side_sums + target + channels, second, mask=known)


@triton.jit(do_not_specialize=COUNTED)
def norm_kernel(
    sums,
    gains,
    biases,
    running_mean,
    running_variance,
    batches,
    norm,
    rows,
    tiles,
    share,
    eps,
    channels,
    learnt,  # channels of the net's own, with which the others begin; what it knows nothing of has gain and bias 0
    ROWS: tl.constexpr,  # of a tile
    PLACES: tl.constexpr,  # of a square: the rows of so many tiles lie among each other, see `written`
    TILES: tl.constexpr,  # at a time
    WIDE: tl.constexpr,
):
    """The norm (4, channels) of all tiles together; the moving averages move on by `share`."""
    channel = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    known, own = channel < channels, channel < learnt
    total = tl.zeros((TILES, WIDE), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        there = (tile < tiles)[:, None] & known[None, :]
        total += tl.load(sums + (tile[:, None] * (2 * channels) + channel[None, :]), mask=there, other=0.0)
    mean = tl.sum(total, 0) / rows
    squares = tl.zeros((TILES, WIDE), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        there = (tile < tiles)[:, None] & known[None, :]
        source = sums + (tile[:, None] * (2 * channels) + channel[None, :])
        count = tl.minimum(rows // PLACES - tile // PLACES * ROWS, ROWS).to(tl.float32)[:, None]
        apart = tl.load(source, mask=there, other=0.0) / count - mean[None, :]
        squares += tl.where(
            there, tl.load(source + channels, mask=there, other=0.0) + count * apart * apart, 0.0
        )
    squared = tl.sum(squares, 0)
    inverse = tl.rsqrt(squared / rows + eps)
    scale = tl.load(gains + channel, mask=own, other=0.0) * inverse
    shift = tl.load(biases + channel, mask=own, other=0.0) - mean * scale
    tl.store(norm + MEAN * channels + channel, mean, mask=known)
    tl.store(norm + INVERSE * channels + channel, inverse, mask=known)
    tl.store(norm + SCALE * channels + channel, scale, mask=known)
    tl.store(norm + SHIFT * channels + channel, shift, mask=known)
    # Moving averages are of the variance without bias.
    old = tl.load(running_mean + channel, mask=own, other=0.0)
    tl.store(running_mean + channel, old * (1 - share) + mean * share, mask=own)
    old = tl.load(running_variance + channel, mask=own, other=0.0)
    unbiased = squared / tl.maximum(rows - 1, 1)
    tl.store(running_variance + channel, old * (1 - share) + unbiased * share, mask=own)
    if tl.program_id(0) == 0:
        tl.store(batches, tl.load(batches) + 1)


@triton.jit(do_not_specialize=COUNTED)
def norm_gradient_kernel(
    sums,
    norm,
    gradients,
    of_gains,
    of_biases,
    rows,
    tiles,
    channels,
    TILES: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Of `gradient_sums` of all tiles the gradients of gain and bias, and a, b, c of that of the maps."""
    channel = tl.program_id(0) * WIDE + tl.arange(0, WIDE)
    known = channel < channels
    first = tl.zeros((TILES, WIDE), tl.float32)
    second = tl.zeros((TILES, WIDE), tl.float32)
    for start in range(0, tiles, TILES):
        tile = start + tl.arange(0, TILES)
        there = (tile < tiles)[:, None] & known[None, :]
        source = sums + (tile[:, None] * (2 * channels) + channel[None, :])
        first += tl.load(source, mask=there, other=0.0)
        second += tl.load(source + channels, mask=there, other=0.0)
    total, leaning = tl.sum(first, 0), tl.sum(second, 0)
    mean = of_norm(norm, MEAN, channel, known, channels)
    inverse = of_norm(norm, INVERSE, channel, known, channels)
    scale = of_norm(norm, SCALE, channel, known, channels)
    tl.store(of_gains + channel, leaning * inverse, mask=known)
    tl.store(of_biases + channel, total, mask=known)
    slope = -scale * inverse * inverse * leaning / rows
    tl.store(gradients + channel, scale, mask=known)
    tl.store(gradients + channels + channel, slope, mask=known)
    tl.store(gradients + 2 * channels + channel, -scale * total / rows - slope * mean, mask=known)


@triton.jit
def apply_kernel(
    maps,
    norm,
    added,
    added_norm,
    results,
    rows,
    channels,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """relu(norm(maps)), or that of norm(maps) plus what is `added`, perhaps after a norm of its own."""
    _, channel, source, there = held(rows, channels, ROWS, WIDE)
    known = channel < channels
    values = tl.load(maps + source, mask=there, other=0.0).to(tl.float32)
    total = normed(values, norm, channel, known, channels)
    if added is not None:
        more = tl.load(added + source, mask=there, other=0.0).to(tl.float32)
        if added_norm is not None:
            more = normed(more, added_norm, channel, known, channels)
        total += more
    tl.store(results + source, tl.maximum(total, 0.0).to(results.dtype.element_ty), mask=there)


@triton.jit
def map_gradient_kernel(
    upstream,
    maps,
    added,
    norm,  # upstream is the gradient behind this norm's ReLU; or None
    gradients,
    results,
    rows,
    channels,
    ROWS: tl.constexpr,
    WIDE: tl.constexpr,
):
    """a * upstream + b * maps + c, plus what comes another way (`added`, or None)."""
    _, channel, source, there = held(rows, channels, ROWS, WIDE)
    known = channel < channels
    a = of_norm(gradients, 0, channel, known, channels)[None, :]
    b = of_norm(gradients, 1, channel, known, channels)[None, :]
    c = of_norm(gradients, 2, channel, known, channels)[None, :]
    values = tl.load(upstream + source, mask=there, other=0.0).to(tl.float32)
    seen = tl.load(maps + source, mask=there, other=0.0).to(tl.float32)
    if norm is not None:
        values = tl.where(is_open(seen, norm, channel, known, channels), values, 0.0)
    total = values * a
    total += seen * b + c
    if added is not None:
        total += tl.load(added + source, mask=there, other=0.0).to(tl.float32)
    tl.store(results + source, total.to(results.dtype.element_ty), mask=there)


@triton.jit
def lay_kernel(
    weights,
    forwards,
    backwards,
    CHANNELS: tl.constexpr,
    NEW_CHANNELS: tl.constexpr,
    KERNEL: tl.constexpr,
    FOLD: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Weights (new channels, channels, k, k) as both products of a convolution read them, in the maps' precision.

    Forwards: (taps, channels, new channels); the gradient reads (taps, new channels, channels). With FOLD the results
    of a square of places are as many columns, and each sees its own k x k taps of those that the square sees; the
    gradient is such a convolution too, by the last tap first.
    """
    SIDE: tl.constexpr = KERNEL + FOLD - 1
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < SIDE * SIDE * CHANNELS * FOLD * FOLD * NEW_CHANNELS
    back = tl.program_id(1) == 1
    IN = tl.where(back, NEW_CHANNELS, CHANNELS)
    OUT = tl.where(back, CHANNELS, NEW_CHANNELS)
    out, rest = element % OUT, element // OUT
    place, rest = rest % (FOLD * FOLD), rest // (FOLD * FOLD)
    one, tap = rest % IN, rest // IN
    y, x = tap // SIDE - place // FOLD, tap % SIDE - place % FOLD
    seen = inside & (y >= 0) & (y < KERNEL) & (x >= 0) & (x < KERNEL)
    if FOLD > 1:
        y, x = tl.where(back, KERNEL - 1 - y, y), tl.where(back, KERNEL - 1 - x, x)
    new, channel = tl.where(back, one, out), tl.where(back, out, one)
    source = ((new * CHANNELS + channel) * KERNEL + y) * KERNEL + x
    value = tl.load(weights + source, mask=seen, other=0.0).to(forwards.dtype.element_ty)
    if back:
        tl.store(backwards + element, value, mask=inside)
    else:
        tl.store(forwards + element, value, mask=inside)
