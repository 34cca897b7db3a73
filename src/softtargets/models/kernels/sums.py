"""Sums over the rest of a stack, always in the same order: who adds what depends on how many numbers each run has."""

import triton
import triton.language as tl


@triton.jit
def sum_kernel(
    values,
    results,
    count,  # numbers of a run
    parts,  # of a run
    PART: tl.constexpr,  # numbers of a part, a multiple of BLOCK
    BLOCK: tl.constexpr,
    SQUARED: tl.constexpr,
):
    """Values (runs, count) to results (runs, parts), in the precision of the results."""
    run = (tl.program_id(0) // parts).to(tl.int64)
    begin = (tl.program_id(0) % parts).to(tl.int64) * PART
    values += run * count
    total = tl.zeros((BLOCK,), results.dtype.element_ty)
    for start in range(0, PART, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        found = tl.load(values + place, mask=place < count, other=0.0).to(results.dtype.element_ty)
        total += found * found if SQUARED else found
    tl.store(results + tl.program_id(0), tl.sum(total, 0))
