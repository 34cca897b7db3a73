"""The kernel for rows that one program can hold in registers: every logit is read once, whatever is asked for."""

import triton
import triton.language as tl

from softtargets.losses.kernels.rules import (
    DISTILLATION,
    LOG2E,
    MATCHING,
    MATRIX,
    MIXTURE,
    VECTOR,
    contributions,
    fold,
    number,
    settle,
    total,
)
from softtargets.losses.kernels.rules import gradient as gradient_of

# What the gradient of a row is multiplied by, and its loss in a sum.
ONE = tl.constexpr(0)  # reduction="sum"
COUNTED = tl.constexpr(1)  # reduction="mean": one over the sum of the partial counts
COUNTING = tl.constexpr(2)  # the same where a single program sees all rows and counts them itself
UPSTREAM = tl.constexpr(3)  # a number per row, from the layer above

# Where the loss goes.
NOWHERE = tl.constexpr(0)
PER_ROW = tl.constexpr(1)
PER_PROGRAM = tl.constexpr(2)


@triton.jit
def row_offset(row, inner, outer_stride, inner_stride, classes, DENSE: tl.constexpr):
    """Where a row begins: rows lie one after another, or are spread over (N, C, d) by strides."""
    if DENSE:
        offset = row.to(tl.int64) * classes
    else:
        offset = (row // inner).to(tl.int64) * outer_stride + (row % inner).to(tl.int64) * inner_stride
    return offset


@triton.jit
def class_offset(column, stride, DENSE: tl.constexpr):
    """Where a class lies within its row."""
    if DENSE:
        offset = column
    else:
        offset = column.to(tl.int64) * stride
    return offset


@triton.jit
def tile_kernel(
    logits, target, table, weight, teacher, numbers, factors, losses, gradient,
    rows, class_units, inner, log_classes, ignore_index, rows_per_number,
    n0, n1, n2, n3, n4,
    z_outer, z_inner, z_class, g_outer, g_inner, g_class, t_outer, t_inner, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, NUMBERS: tl.constexpr,
    ADAPTIVE: tl.constexpr, OWN: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    DENSE: tl.constexpr, UNIT: tl.constexpr, MASKED: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Losses and gradients of ROWS rows of at most BLOCK classes."""
    classes = class_units * UNIT  # so that the compiler knows what the rows are aligned to
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    exists = row < rows
    column = tl.arange(0, BLOCK)
    inside = column < classes
    y = tl.load(target + row, mask=exists, other=ignore_index)
    kept = exists & (y != ignore_index)
    known = kept & (y >= 0) & (y < classes)
    y = tl.where(known, y, 0)

    read = kept[:, None]
    if MASKED:
        read = read & inside[None, :]
    begin = row_offset(row, inner, z_outer, z_inner, classes, DENSE)
    place = logits + begin[:, None] + class_offset(column, z_class, DENSE)[None, :]
    z = number(tl.load(place, mask=read, other=-float("inf")))
    zy = tl.load(logits + begin + class_offset(y, z_class, DENSE), mask=known, other=float("nan"))
    zy = number(zy)

    a0 = tl.full([ROWS], n0, tl.float32)
    a1 = tl.full([ROWS], n1, tl.float32)
    a2 = tl.full([ROWS], n2, tl.float32)
    a3 = tl.full([ROWS], n3, tl.float32)
    a4 = tl.full([ROWS], n4, tl.float32)
    if NUMBERS > 0:
        own_numbers = numbers + (row // rows_per_number) * NUMBERS
        a0 = tl.load(own_numbers, mask=kept, other=0.0)
        if NUMBERS > 1:
            a1 = tl.load(own_numbers + 1, mask=kept, other=0.0)
        if NUMBERS > 2:
            a2 = tl.load(own_numbers + 2, mask=kept, other=0.0)
        if NUMBERS > 3:
            a3 = tl.load(own_numbers + 3, mask=kept, other=0.0)
        if NUMBERS > 4:
            a4 = tl.load(own_numbers + 4, mask=kept, other=0.0)

    # q, w and t are the soft target, the class weights and the teacher; with a y, those of the label alone.
    q = z
    w = z
    t = z
    mt = a0
    qy = a0
    ty = a0
    wy = tl.full([ROWS], 1.0, tl.float32)
    if KIND == MIXTURE:
        if TABLE == VECTOR:
            q = tl.load(table + column, mask=inside, other=0.0).to(tl.float32)[None, :]
            qy = tl.load(table + y, mask=known, other=0.0).to(tl.float32)
        if TABLE == MATRIX:
            own_row = table + y.to(tl.int64) * classes
            q = tl.load(own_row[:, None] + column[None, :], mask=read, other=0.0).to(tl.float32)
            qy = tl.load(own_row + y, mask=known, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        wy = tl.load(weight + y, mask=known, other=0.0).to(tl.float32)
    if (KIND == DISTILLATION) or (KIND == MATCHING):
        taught = teacher + row_offset(row, inner, t_outer, t_inner, classes, DENSE)
        t_place = taught[:, None] + class_offset(column, t_class, DENSE)[None, :]
        t = number(tl.load(t_place, mask=read, other=-float("inf")))
        ty = number(tl.load(taught + class_offset(y, t_class, DENSE), mask=known, other=0.0))
        mt = tl.max(t, axis=1) * LOG2E

    m = tl.max(z, axis=1) * LOG2E
    e, c1, c2, c3, c4 = contributions(
        z, inside[None, :], q, w, t, m[:, None], mt[:, None], a2[:, None], a3[:, None],
        KIND, TABLE, WEIGHT, OWN, MASKED,
    )  # fmt: skip
    s0, s1, s2, s3, s4 = total(e, c1, c2, c3, c4, 1, KIND, TABLE, WEIGHT, ADAPTIVE)
    loss, _log_s, ca, cb, cc, ce, cm, cy = settle(
        s0, s1, s2, s3, s4, zy * LOG2E - m, wy, a0, a1, a2, a3, a4, classes, log_classes,
        KIND, TABLE, WEIGHT, ADAPTIVE, OWN, REPORT_KL,
    )  # fmt: skip

    factor = tl.full([ROWS], 1.0, tl.float32)
    if FACTOR == COUNTED:
        factor = factor / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))
    if FACTOR == COUNTING:
        factor = factor / tl.sum(tl.where(kept, wy, 0.0))
    if FACTOR == UPSTREAM:
        factor = tl.load(factors + row, mask=exists, other=0.0)

    if LOSS == PER_ROW:
        tl.store(losses + row, tl.where(kept, loss, 0.0), mask=exists)
    if LOSS == PER_PROGRAM:
        summed = tl.sum(tl.where(kept, loss, 0.0))
        if FACTOR == COUNTING:
            summed = summed * tl.max(factor)
        tl.store(losses + tl.program_id(0), summed)

    if GRADIENT:
        ca, cb, cc, ce, cm, cy = fold(ca, cb, cc, ce, cm, cy, factor, s0, s1, s2, KIND, OWN)
        g = gradient_of(
            z, q, w, t, e, c1, c2, ca[:, None], cb[:, None], cc[:, None], ce[:, None], cm[:, None],
            KIND, TABLE, WEIGHT, OWN,
        )  # fmt: skip
        # An ignored row has the gradient 0 whatever its logits; a label that is no class makes NaN of the whole row.
        g = tl.where(known[:, None], g, tl.where(kept, float("nan"), 0.0)[:, None])
        written = gradient + row_offset(row, inner, g_outer, g_inner, classes, DENSE)
        write = exists[:, None]
        if MASKED:
            write = write & inside[None, :]
        g_place = written[:, None] + class_offset(column, g_class, DENSE)[None, :]
        tl.store(g_place, g.to(gradient.dtype.element_ty), mask=write)
        # The label's own entry is written once more: cheaper than asking of every class whether it is the label.
        ey, cy1, cy2, _cy3, _cy4 = contributions(
            zy, known, qy, wy, ty, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
        )
        gy = gradient_of(zy, qy, wy, ty, ey, cy1, cy2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN) - cy
        tl.debug_barrier()
        tl.store(written + class_offset(y, g_class, DENSE), gy.to(gradient.dtype.element_ty), mask=known)
