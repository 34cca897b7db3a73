"""The small kernels around the large ones: what a mean divides by, the sum of partial losses, a late factor."""

import triton
import triton.language as tl


@triton.jit
def label_weights(
    target, weight, first, step, rows, classes, ignore_index,
    WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The number of rows that count, or the weights of their labels: of BLOCK rows from the first, and after each step."""
    total = tl.zeros([BLOCK], tl.float32)
    for begin in range(first, rows, step):
        row = begin + tl.arange(0, BLOCK)
        y = tl.load(target + row, mask=row < rows, other=ignore_index)
        kept = (y != ignore_index) & (row < rows)
        if WEIGHT:
            known = kept & (y >= 0) & (y < classes)
            total += tl.load(weight + tl.where(known, y, 0), mask=known, other=0.0).to(tl.float32)
        else:
            total += tl.where(kept, 1.0, 0.0)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["rows", "ignore_index"])
def weigh_kernel(
    target, weight, partials, rows, classes, ignore_index,
    WEIGHT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same of all rows, in as many parts as there are programs."""
    first, step = tl.program_id(0) * BLOCK, tl.num_programs(0) * BLOCK
    total = label_weights(target, weight, first, step, rows, classes, ignore_index, WEIGHT, BLOCK)
    tl.store(partials + tl.program_id(0), total)


@triton.jit(do_not_specialize=["count"])
def finish_kernel(
    partial_losses, factors, loss, count,
    MEAN: tl.constexpr, PARTIALS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sum of the partial losses, divided by the sum of the partial counts for a mean."""
    total = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, count, BLOCK):
        place = begin + tl.arange(0, BLOCK)
        total += tl.load(partial_losses + place, mask=place < count, other=0.0)
    result = tl.sum(total, axis=0)
    if MEAN:
        by = tl.sum(tl.load(factors + tl.arange(0, PARTIALS)), axis=0)
        result = tl.where(by == 0, float("nan"), result / by)  # not infinite, where weights are 0
    tl.store(loss, result.to(loss.dtype.element_ty))


@triton.jit(do_not_specialize=["size"])
def scale_kernel(gradient, factor, size, BLOCK: tl.constexpr):
    """Multiply in place by a number known on the device only; a factor of 1 costs nothing but the look."""
    by = tl.load(factor).to(tl.float32)
    if by != 1.0:
        for begin in range(tl.program_id(0).to(tl.int64) * BLOCK, size, tl.num_programs(0) * BLOCK):
            place = begin + tl.arange(0, BLOCK)
            value = tl.load(gradient + place, mask=place < size).to(tl.float32)
            tl.store(gradient + place, (value * by).to(gradient.dtype.element_ty), mask=place < size)
