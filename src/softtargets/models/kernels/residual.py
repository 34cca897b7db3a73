"""What lies between the matrix products of a Transformer: sums with their norms, and sums over the rows of a batch.

A layer norm leaves its normalised sums in single precision, of which the next sum and the gradient are made, and its
result in the precision that products are made in.
"""

import triton
import triton.language as tl

from softtargets.models.kernels.dropout import kept_of


@triton.jit
def states_of(normal, gains, shifts, offsets, columns, inside, there):
    """What a norm, or the embedding if there are no gains, has said of some places; in single precision."""
    states = tl.load(normal + offsets, mask=there, other=0.0)
    if gains is not None:
        gain, shift = tl.load(gains + columns, mask=inside), tl.load(shifts + columns, mask=inside)
        states = states * gain[None, :] + shift[None, :]
    return states


@triton.jit
def residual_kernel(
    before,  # normalised sums of the norm before this, or embedded tokens; (rows, WIDTH) as all tensors, float32
    gains_before,  # of that norm, (WIDTH,), float32; or None
    shifts_before,
    branch,  # what a layer made of the states, in low precision
    place,  # of the dropout, as in `dropout_kernel`; or None
    position,
    gains,
    shifts,
    normal,  # the normalised sums, float32
    results,  # scaled and shifted, in low precision
    spreads,  # (rows,), what the sums were multiplied by
    rows,
    eps,
    least,
    scale,
    each,
    SLICED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,  # a power of two, not smaller
    ROWS: tl.constexpr,
):
    """norm(states + dropout(branch)) of some rows."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    inside = columns < WIDTH
    there = (row < rows)[:, None] & inside[None, :]
    offsets = row[:, None] * WIDTH + columns[None, :]
    added = tl.load(branch + offsets, mask=there, other=0.0).to(tl.float32)
    if place is not None:
        kept = kept_of(place, position, row, least, each, SLICED, WIDTH, WIDE, ROWS)
        added = tl.where(kept, added * scale, 0.0)
    sums = states_of(before, gains_before, shifts_before, offsets, columns, inside, there) + added
    sums = tl.where(there, sums, 0.0)
    centred = tl.where(there, sums - tl.sum(sums, 1)[:, None] / WIDTH, 0.0)
    spread = tl.rsqrt(tl.sum(centred * centred, 1) / WIDTH + eps)
    found = centred * spread[:, None]
    tl.store(normal + offsets, found, mask=there)
    tl.store(spreads + row, spread, mask=row < rows)
    gain, shift = tl.load(gains + columns, mask=inside), tl.load(shifts + columns, mask=inside)
    found = found * gain[None, :] + shift[None, :]
    tl.store(results + offsets, found.to(results.dtype.element_ty), mask=there)


@triton.jit
def both_sums(one, other, next_one, next_other):
    """Two sums at a time: threads wait for each other once."""
    return one + next_one, other + next_other


@triton.jit
def residual_gradient_kernel(
    of_states,  # what comes back from the next sum, float32; or None
    of_results,  # what comes back from layers, in low precision
    normal,
    spreads,
    gains,
    place,
    position,
    of_before,  # the gradient of the states, float32
    of_branch,  # that of the branch, in low precision
    partials,  # (programs, 3, WIDTH), float32: of the gains, of the shifts, and what the branch's gradient adds up to
    rows,
    least,
    scale,
    each,
    SLICED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The gradients of `residual_kernel`; masks are drawn again."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    inside = columns < WIDTH
    there = (row < rows)[:, None] & inside[None, :]
    offsets = row[:, None] * WIDTH + columns[None, :]
    upstream = tl.load(of_results + offsets, mask=there, other=0.0).to(tl.float32)
    if of_states is not None:
        upstream += tl.load(of_states + offsets, mask=there, other=0.0)
    found = tl.load(normal + offsets, mask=there, other=0.0)
    partials += tl.program_id(0) * (3 * WIDTH) + columns
    tl.store(partials, tl.sum(upstream * found, 0), mask=inside)
    tl.store(partials + WIDTH, tl.sum(upstream, 0), mask=inside)
    upstream *= tl.load(gains + columns, mask=inside, other=0.0)[None, :]
    sums, products = tl.reduce((upstream, upstream * found), 1, both_sums)
    straight = upstream - sums[:, None] / WIDTH - found * (products[:, None] / WIDTH)
    straight *= tl.load(spreads + row, mask=row < rows, other=0.0)[:, None]
    straight = tl.where(there, straight, 0.0)
    tl.store(of_before + offsets, straight, mask=there)
    if place is not None:
        kept = kept_of(place, position, row, least, each, SLICED, WIDTH, WIDE, ROWS)
        straight = tl.where(kept, straight * scale, 0.0)
    tl.store(of_branch + offsets, straight.to(of_branch.dtype.element_ty), mask=there)
    tl.store(partials + 2 * WIDTH, tl.sum(straight, 0), mask=inside)


@triton.jit
def embed_kernel(
    tokens,  # (rows,), int64
    table,  # (vocabulary, WIDTH), float32
    waves,  # (length, WIDTH), float32: what is added at each place of a sentence
    place,
    position,
    states,  # float32
    results,  # in low precision
    rows,
    length,  # places of a sentence
    factor,  # that embeddings are multiplied by
    least,
    scale,
    each,
    SLICED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """dropout(factor * embedding + waves)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    there = (row < rows)[:, None] & (columns < WIDTH)[None, :]
    offsets = row[:, None] * WIDTH + columns[None, :]
    token = tl.load(tokens + row, mask=row < rows, other=0)
    found = tl.load(table + token[:, None] * WIDTH + columns[None, :], mask=there, other=0.0) * factor
    found += tl.load(waves + (row % length)[:, None] * WIDTH + columns[None, :], mask=there, other=0.0)
    if place is not None:
        kept = kept_of(place, position, row, least, each, SLICED, WIDTH, WIDE, ROWS)
        found = tl.where(kept, found * scale, 0.0)
    tl.store(states + offsets, found, mask=there)
    tl.store(results + offsets, found.to(results.dtype.element_ty), mask=there)


@triton.jit
def embed_gradient_kernel(
    of_states,  # float32
    of_results,  # in low precision
    place,
    position,
    gradient,  # of the rows that were looked up, float32
    rows,
    factor,
    least,
    scale,
    each,
    SLICED: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The gradient of `embed_kernel` with respect to the rows of its table, a row for each token."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, WIDE)
    there = (row < rows)[:, None] & (columns < WIDTH)[None, :]
    offsets = row[:, None] * WIDTH + columns[None, :]
    found = tl.load(of_states + offsets, mask=there, other=0.0)
    found += tl.load(of_results + offsets, mask=there, other=0.0).to(tl.float32)
    if place is not None:
        kept = kept_of(place, position, row, least, each, SLICED, WIDTH, WIDE, ROWS)
        found = tl.where(kept, found * scale, 0.0)
    tl.store(gradient + offsets, found * factor, mask=there)


@triton.jit
def column_sums_kernel(
    matrix,  # (rows, columns), dense
    seen,  # what a ReLU has given, (rows, columns); or None
    tokens,  # (rows,), int64, if only the rows of one of them count; or None
    partials,  # (programs, columns), float32
    rows,
    count,  # columns
    only,  # the token
    ROWS: tl.constexpr,  # at a time
    PART: tl.constexpr,  # of a program
    COLUMNS: tl.constexpr,
):
    """The sums of columns over some rows; of the gradient of a ReLU first it is put to 0 where nothing was given."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for begin in range(0, PART, ROWS):
        row = tl.program_id(0).to(tl.int64) * PART + begin + tl.arange(0, ROWS)
        counts = row < rows
        if tokens is not None:
            counts = counts & (tl.load(tokens + row, mask=counts, other=0) == only)
        there = counts[:, None] & (columns < count)[None, :]
        offsets = row[:, None] * count + columns[None, :]
        found = tl.load(matrix + offsets, mask=there, other=0.0)
        if seen is not None:
            given = tl.load(seen + offsets, mask=there, other=0.0)
            found = tl.where(given > 0, found, 0.0).to(matrix.dtype.element_ty)
            tl.store(matrix + offsets, found, mask=there)
        sums += found.to(tl.float32)
    tl.store(partials + tl.program_id(0) * count + columns, tl.sum(sums, 0), mask=columns < count)


@triton.jit
def sum_of_parts_kernel(
    partials,  # (layers, parts, columns), float32
    sums,  # (layers, columns)
    parts,
    count,  # columns
    AT_A_TIME: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Parts are added up in one order."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    partials += tl.program_id(0).to(tl.int64) * parts * count
    found = tl.zeros([AT_A_TIME, COLUMNS], tl.float32)
    for begin in range(0, parts, AT_A_TIME):
        part = begin + tl.arange(0, AT_A_TIME)
        there = (part < parts)[:, None] & (columns < count)[None, :]
        found += tl.load(partials + part[:, None] * count + columns[None, :], mask=there, other=0.0)
    tl.store(sums + tl.program_id(0) * count + columns, tl.sum(found, 0), mask=columns < count)
