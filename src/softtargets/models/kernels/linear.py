"""Linear layers of many nets at a time: products of matrices, one for each run.

Every program works for one run, and adds up from the first to the last: what a run gets depends neither on the others
nor on how a result is cut into tiles. NVIDIA's library cuts up sums by how many products there are.
"""

import triton
import triton.language as tl

# Rows that are on their way at a time when they are added up.
AT_ONCE = tl.constexpr(16)


@triton.jit
def product_kernel(
    left,
    right,
    bias,  # (runs, columns), added to every row; or None
    results,
    sums,  # (runs, columns): of the rows of the right matrix; or None
    rows,
    left_run,  # how far apart in memory
    left_row,
    left_deep,
    right_run,
    right_deep,
    right_column,
    result_run,
    result_row,
    result_column,
    DEEP: tl.constexpr,
    WIDE: tl.constexpr,  # columns there are
    ROWS: tl.constexpr,  # of a tile
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Left (runs, rows, DEEP) times right (runs, DEEP, WIDE)."""
    down, across = tl.cdiv(rows, ROWS), tl.cdiv(WIDE, COLUMNS)
    tiles = down * across
    programs = tiles
    if sums is not None:  # by programs of their own, which do not wait for products
        programs += across
    run = (tl.program_id(0) // programs).to(tl.int64)
    tile = tl.program_id(0) % programs
    right += run * right_run
    if tile < tiles:
        row = (tile % down) * ROWS + tl.arange(0, ROWS)
        column = (tile // down) * COLUMNS + tl.arange(0, COLUMNS)
        left += run * left_run
        there, known = row < rows, column < WIDE
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for start in range(0, DEEP, DEPTH):
            deep = start + tl.arange(0, DEPTH)
            inside = deep < DEEP
            a = tl.load(
                left + (row[:, None] * left_row + deep[None, :] * left_deep),
                mask=there[:, None] & inside[None, :],
                other=0.0,
            )
            b = tl.load(
                right + (deep[:, None] * right_deep + column[None, :] * right_column),
                mask=inside[:, None] & known[None, :],
                other=0.0,
            )
            total = tl.dot(a, b, total, input_precision=PRECISION)
        if bias is not None:
            total += tl.load(bias + run * WIDE + column, mask=known, other=0.0).to(tl.float32)[None, :]
        target = row[:, None] * result_row + column[None, :] * result_column
        tl.store(
            results + run * result_run + target,
            total.to(results.dtype.element_ty),
            mask=there[:, None] & known[None, :],
        )
    elif sums is not None:
        column = (tile - tiles) * COLUMNS + tl.arange(0, COLUMNS)
        known = column < WIDE
        found = tl.zeros((COLUMNS,), tl.float32)
        # One row after another: `tl.sum` would add in an order that the size of a tile decides.
        for start in range(0, DEEP, AT_ONCE):
            part = tl.zeros((COLUMNS,), tl.float32)
            for place in tl.static_range(AT_ONCE):
                source = right + ((start + place) * right_deep + column * right_column)
                part += tl.load(source, mask=known & (start + place < DEEP), other=0.0).to(tl.float32)
            found += part
        tl.store(sums + run * WIDE + column, found, mask=known)
