"""The gradient of a table whose rows were looked up: for each row the sum of all that came back to it, in one order."""

import triton
import triton.language as tl


@triton.jit
def table_gradient_kernel(
    upstream,  # (places, width), dense
    order,  # places, those of the first row of the table first
    begins,  # of each row of the table, and the end of the last
    gradient,  # (rows, width), dense
    width,
    apart,  # a row that somebody else adds up; -1: none
    PLACES: tl.constexpr,  # added up at a time
    BLOCK: tl.constexpr,  # columns of a program
):
    """Some columns of one row; its places are added up in one order, whatever else there is."""
    row = tl.program_id(0).to(tl.int64)
    if row == apart:
        return
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    first, last = tl.load(begins + row), tl.load(begins + row + 1)
    sums = tl.zeros([PLACES, BLOCK], tl.float32)
    for begin in range(first, last, PLACES):
        chosen = begin + tl.arange(0, PLACES)
        there = chosen < last
        places = tl.load(order + chosen, mask=there, other=0)
        seen = tl.load(
            upstream + places[:, None] * width + columns[None, :],
            mask=there[:, None] & inside[None, :],
            other=0.0,
        )
        sums += seen.to(tl.float32)
    found = tl.sum(sums, axis=0)
    tl.store(gradient + row * width + columns, found.to(gradient.dtype.element_ty), mask=inside)


@triton.jit
def order_kernel(
    tokens,  # (count,), int64
    order,  # places, int64: those of the smallest token first, and each token's from first to last
    ordered,  # the tokens in that order
    count,
    OWN: tl.constexpr,  # places of a program
    OTHERS: tl.constexpr,  # that they are compared with at a time
):
    """A stable sort by counting what comes before each place; tokens times places must fit into 31 bits."""
    own = tl.program_id(0) * OWN + tl.arange(0, OWN)
    token = tl.load(tokens + own, mask=own < count, other=0).to(tl.int32)
    key = token * count + own
    before = tl.zeros([OWN, OTHERS], tl.int32)
    for begin in range(0, count, OTHERS):
        other = begin + tl.arange(0, OTHERS)
        there = other < count
        others = tl.load(tokens + other, mask=there, other=0).to(tl.int32) * count + other
        others = tl.where(there, others, 2**31 - 1)
        before += (others[None, :] < key[:, None]).to(tl.int32)
    rank = tl.sum(before, 1)
    tl.store(order + rank, own.to(tl.int64), mask=own < count)
    tl.store(ordered + rank, token.to(tl.int64), mask=own < count)
