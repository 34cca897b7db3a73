"""The kernel for long rows: several programs share a row, each holds its part in registers, and they exchange sums.

So every logit is read from memory once, however long the row. A program publishes the sums of its part, reads its part
of the next row while the others finish, waits until all parts have arrived, and writes its part of the gradient.

Waiting is safe because programs start in the order of their numbers and those that share a row are neighbours: the
earliest unfinished group is always complete, finishes, and makes room. Where programs do not run side by side at all
(Triton's interpreter), the two phases are launched one after the other.
"""

import triton
import triton.language as tl

from softtargets.losses.kernels.rules import (
    LABO,
    LEAST,
    LOG2E,
    MATRIX,
    MIXTURE,
    PENALTY,
    UNIFORM,
    VECTOR,
    contributions,
    exp2,
    fold,
    number,
    settle,
    total,
)
from softtargets.losses.kernels.rules import gradient as gradient_of
from softtargets.losses.kernels.tile import COUNTED, NOWHERE, UPSTREAM

# What a launch does.
TOGETHER = tl.constexpr(0)
PUBLISH = tl.constexpr(1)
USE = tl.constexpr(2)

# Numbers published for each part: its maximum and five sums, padded.
FIELDS = tl.constexpr(8)


@triton.jit
def split_kernel(
    logits, target, table, weight, numbers, factors, losses, gradient, sums, arrivals,
    rows, class_units, log_classes, ignore_index, rows_per_number,
    n0, n1, n2, n3, n4,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, NUMBERS: tl.constexpr,
    ADAPTIVE: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    UNIT: tl.constexpr, MASKED: tl.constexpr, KEEP: tl.constexpr, PHASE: tl.constexpr,
    PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Losses and gradients of every row that falls to this group of PARTS programs; BLOCK classes are this one's."""
    classes = class_units * UNIT
    part = tl.program_id(0) % PARTS
    group = tl.program_id(0) // PARTS
    groups = tl.num_programs(0) // PARTS
    column = part * BLOCK + tl.arange(0, BLOCK)
    inside = column < classes
    parts = tl.arange(0, PARTS_PADDED)

    q = tl.zeros([BLOCK], tl.float32)
    w = tl.zeros([BLOCK], tl.float32)
    if TABLE == VECTOR:
        q = tl.load(table + column, mask=inside, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    factor = 1.0
    if FACTOR == COUNTED:
        factor = 1.0 / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))
    a0 = n0 + 0.0
    a1 = n1 + 0.0
    a2 = n2 + 0.0
    a3 = n3 + 0.0
    a4 = n4 + 0.0

    raw = tl.load(
        logits + group.to(tl.int64) * classes + column, mask=inside & (group < rows), other=-float("inf")
    )
    row = group
    while row < rows:
        y = tl.load(target + row)
        kept = y != ignore_index
        known = kept & (y >= 0) & (y < classes)
        y = tl.where(known, y, 0)
        begin = row.to(tl.int64) * classes
        z = number(raw)
        zy = number(tl.load(logits + begin + y, mask=known, other=float("nan")))
        if NUMBERS > 0:
            own_numbers = numbers + (row // rows_per_number) * NUMBERS
            a0 = tl.load(own_numbers)
            if NUMBERS > 1:
                a1 = tl.load(own_numbers + 1)
            if NUMBERS > 2:
                a2 = tl.load(own_numbers + 2)
            if NUMBERS > 3:
                a3 = tl.load(own_numbers + 3)
        wy = 1.0
        qy = 0.0
        if WEIGHT:
            wy = tl.load(weight + y).to(tl.float32)
        if TABLE == VECTOR:
            qy = tl.load(table + y).to(tl.float32)
        if TABLE == MATRIX:
            own_row = table + y.to(tl.int64) * classes
            q = tl.load(own_row + column, mask=inside, other=0.0).to(tl.float32)
            qy = tl.load(own_row + y).to(tl.float32)

        mine = tl.max(z, axis=0)
        e, c1, c2, c3, c4 = contributions(
            z, inside, q, w, z, mine, mine, a2, a3, KIND, TABLE, WEIGHT, False, MASKED
        )
        own_sums = sums + (row * PARTS + part) * FIELDS
        if PHASE != USE:
            x0, x1, x2, x3, x4 = total(e, c1, c2, c3, c4, 0, KIND, TABLE, WEIGHT, ADAPTIVE)
            if (KIND == MIXTURE) and (TABLE == UNIFORM) and (not WEIGHT):
                # How many classes there are in this part: what a shift of the maximum is multiplied by.
                x1 = tl.maximum(tl.minimum(classes - part * BLOCK, BLOCK), 0).to(tl.float32)
            tl.store(own_sums, mine)
            tl.store(own_sums + 1, x0)
            tl.store(own_sums + 2, x1)
            tl.store(own_sums + 3, x2)
            tl.store(own_sums + 4, x3)
            tl.store(own_sums + 5, x4)
            tl.debug_barrier()
            tl.atomic_add(arrivals + row, 1, sem="release")

        following = row + groups
        raw = tl.load(
            logits + following.to(tl.int64) * classes + column,
            mask=inside & (following < rows),
            other=-float("inf"),
        )

        if PHASE != PUBLISH:
            arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
            while arrived < PARTS:
                arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
            there = parts < PARTS
            all_sums = sums + (row * PARTS + parts) * FIELDS
            each_m = tl.load(all_sums, mask=there, other=LEAST, cache_modifier=".cg")
            m = tl.max(each_m, axis=0)
            shift = each_m - m
            scale = exp2(shift * LOG2E)
            each0 = tl.load(all_sums + 1, mask=there, other=0.0, cache_modifier=".cg")
            s0 = tl.sum(scale * each0, axis=0)
            s1 = s0
            s2 = s0
            s3 = s0
            s4 = s0
            if KIND == MIXTURE:
                each1 = tl.load(all_sums + 2, mask=there, other=0.0, cache_modifier=".cg")
                each2 = tl.load(all_sums + 3, mask=there, other=0.0, cache_modifier=".cg")
                s1 = tl.sum(each1, axis=0)
                s2 = tl.sum(each2 + shift * each1, axis=0)
            if (KIND == PENALTY) or (KIND == LABO):
                each1 = tl.load(all_sums + 2, mask=there, other=0.0, cache_modifier=".cg")
                s1 = tl.sum(scale * (each1 + shift * each0), axis=0)
            if KIND == LABO:
                soft_scale = exp2(shift * (a2 * LOG2E))
                each2 = tl.load(all_sums + 3, mask=there, other=0.0, cache_modifier=".cg")
                each3 = tl.load(all_sums + 4, mask=there, other=0.0, cache_modifier=".cg")
                each4 = tl.load(all_sums + 5, mask=there, other=0.0, cache_modifier=".cg")
                s2 = tl.sum(soft_scale * each2, axis=0)
                if WEIGHT:
                    s3 = tl.sum(soft_scale * (each3 + shift * each4), axis=0)
                    s4 = tl.sum(soft_scale * each4, axis=0)
                else:
                    s3 = tl.sum(soft_scale * (each3 + shift * each2), axis=0)
            loss, _log_s, ca, cb, cc, ce, cm, cy = settle(
                s0, s1, s2, s3, s4, zy - m, wy, a0, a1, a2, a3, a4, classes, log_classes,
                KIND, TABLE, WEIGHT, ADAPTIVE, False, REPORT_KL,
            )  # fmt: skip
            if LOSS != NOWHERE:
                if part == 0:
                    tl.store(losses + row, tl.where(kept, loss, 0.0))
            if FACTOR == UPSTREAM:
                factor = tl.load(factors + row)
            if GRADIENT:
                row_factor = tl.where(known, factor, float("nan"))
                ca, cb, cc, ce, cm, cy = fold(ca, cb, cc, ce, cm, cy, row_factor, s0, s1, s2, KIND, False)
                ey, y1, y2, _y3, _y4 = contributions(
                    zy, known, qy, wy, zy, m, m, a2, a3, KIND, TABLE, WEIGHT, False, False
                )
                gy = (
                    gradient_of(zy, qy, wy, zy, ey, y1, y2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, False)
                    - cy
                )
                if KEEP:
                    # What was computed against this part's own maximum is moved to that of the row.
                    own_shift = mine - m
                    ca += cb * own_shift
                    ca *= exp2(own_shift * LOG2E)
                    cb *= exp2(own_shift * LOG2E)
                    if KIND == LABO:
                        cc *= exp2(own_shift * (a2 * LOG2E))
                else:
                    e, c1, c2, c3, c4 = contributions(
                        z, inside, q, w, z, m, m, a2, a3, KIND, TABLE, WEIGHT, False, False
                    )
                g = gradient_of(z, q, w, z, e, c1, c2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, False)
                g = tl.where(kept, g, 0.0)
                tl.store(gradient + begin + column, g.to(gradient.dtype.element_ty), mask=inside)
                tl.debug_barrier()
                at_home = known & (y >= part * BLOCK) & (y < part * BLOCK + BLOCK)
                tl.store(gradient + begin + y, gy.to(gradient.dtype.element_ty), mask=at_home)
        row = following
