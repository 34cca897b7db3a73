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
def publish(
    raw, sums, arrivals, row, part, classes, inside, q, w, a2,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, ADAPTIVE: tl.constexpr,
    MASKED: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Gather the sums of this part of a row and let the other parts have them."""
    z = number(raw)
    m = tl.max(z, axis=0) * LOG2E
    e, c1, c2, c3, c4 = contributions(z, inside, q, w, z, m, m, a2, a2, KIND, TABLE, WEIGHT, False, MASKED)
    x0, x1, x2, x3, x4 = total(e, c1, c2, c3, c4, 0, KIND, TABLE, WEIGHT, ADAPTIVE)
    if (KIND == MIXTURE) and (TABLE == UNIFORM) and (not WEIGHT):
        # How many classes there are in this part: what a shift of the maximum is multiplied by.
        x1 = tl.maximum(tl.minimum(classes - part * BLOCK, BLOCK), 0).to(tl.float32)
    own = sums + (row * PARTS + part) * FIELDS
    tl.store(own, m)
    tl.store(own + 1, x0)
    tl.store(own + 2, x1)
    tl.store(own + 3, x2)
    tl.store(own + 4, x3)
    tl.store(own + 5, x4)
    tl.debug_barrier()
    tl.atomic_add(arrivals + row, 1, sem="release")


@triton.jit
def collect(
    sums, arrivals, row, a2,
    KIND: tl.constexpr, WEIGHT: tl.constexpr, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr,
):  # fmt: skip
    """Wait for all parts of a row; its maximum, and the five sums moved to that."""
    arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
    while arrived < PARTS:
        arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
    parts = tl.arange(0, PARTS_PADDED)
    there = parts < PARTS
    every = sums + (row * PARTS + parts) * FIELDS
    each_m = tl.load(every, mask=there, other=LEAST, cache_modifier=".cg")
    each0 = tl.load(every + 1, mask=there, other=0.0, cache_modifier=".cg")
    each1 = tl.load(every + 2, mask=there, other=0.0, cache_modifier=".cg")
    each2 = tl.load(every + 3, mask=there, other=0.0, cache_modifier=".cg")
    each3 = tl.load(every + 4, mask=there, other=0.0, cache_modifier=".cg")
    each4 = tl.load(every + 5, mask=there, other=0.0, cache_modifier=".cg")
    m = tl.max(each_m, axis=0)
    shift = each_m - m
    scale = exp2(shift)
    s0 = tl.sum(scale * each0, axis=0)
    s1 = s0
    s2 = s0
    s3 = s0
    s4 = s0
    if KIND == MIXTURE:
        s1 = tl.sum(each1, axis=0)
        s2 = tl.sum(each2 + shift * each1, axis=0)
    if (KIND == PENALTY) or (KIND == LABO):
        s1 = tl.sum(scale * (each1 + shift * each0), axis=0)
    if KIND == LABO:
        soft_scale = exp2(shift * a2)
        s2 = tl.sum(soft_scale * each2, axis=0)
        if WEIGHT:
            s3 = tl.sum(soft_scale * (each3 + shift * each4), axis=0)
            s4 = tl.sum(soft_scale * each4, axis=0)
        else:
            s3 = tl.sum(soft_scale * (each3 + shift * each2), axis=0)
    return m, s0, s1, s2, s3, s4


@triton.jit
def split_kernel(
    logits, target, table, weight, numbers, factors, losses, gradient, sums, arrivals,
    rows, class_units, log_classes, ignore_index, rows_per_number,
    n0, n1, n2, n3, n4,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, NUMBERS: tl.constexpr,
    ADAPTIVE: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    UNIT: tl.constexpr, MASKED: tl.constexpr, PHASE: tl.constexpr,
    PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Losses and gradients of every row that falls to this group of PARTS programs; BLOCK classes are this one's."""
    classes = class_units * UNIT
    part = tl.program_id(0) % PARTS
    group = tl.program_id(0) // PARTS
    groups = tl.num_programs(0) // PARTS
    column = part * BLOCK + tl.arange(0, BLOCK)
    inside = column < classes

    q = tl.zeros([BLOCK], tl.float32)
    w = tl.zeros([BLOCK], tl.float32)
    if TABLE == VECTOR:
        q = tl.load(table + column, mask=inside, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    factor = 1.0
    if FACTOR == COUNTED:
        factor = 1.0 / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))

    # Three rows are under way: `raw` is published and waits for the others, `ahead` comes next, `later` is being read.
    row = group
    raw = tl.load(logits + row.to(tl.int64) * classes + column, mask=inside & (row < rows), other=-float("inf"))
    y = tl.load(target + row, mask=row < rows, other=ignore_index)
    known = (y != ignore_index) & (y >= 0) & (y < classes)
    zy = tl.load(logits + row.to(tl.int64) * classes + y, mask=known, other=float("nan"))
    ahead = raw
    if TABLE != MATRIX:
        next_row = row + groups
        ahead = tl.load(
            logits + next_row.to(tl.int64) * classes + column, mask=inside & (next_row < rows), other=-float("inf")
        )
    a0 = n0 + 0.0
    a1 = n1 + 0.0
    a2 = n2 + 0.0
    a3 = n3 + 0.0
    a4 = n4 + 0.0
    sharpness = a2
    if PHASE != USE:
        if row < rows:
            if TABLE == MATRIX:
                q = tl.load(table + tl.where(known, y, 0) * classes + column, mask=inside, other=0.0).to(tl.float32)
            if NUMBERS > 2:
                sharpness = tl.load(numbers + (row // rows_per_number) * NUMBERS + 2)
            publish(
                raw, sums, arrivals, row, part, classes, inside, q, w, sharpness,
                KIND, TABLE, WEIGHT, ADAPTIVE, MASKED, PARTS, BLOCK,
            )  # fmt: skip

    while row < rows:
        next_row = row + groups
        next_y = tl.load(target + next_row, mask=next_row < rows, other=ignore_index)
        next_known = (next_y != ignore_index) & (next_y >= 0) & (next_y < classes)
        next_zy = tl.load(logits + next_row.to(tl.int64) * classes + next_y, mask=next_known, other=float("nan"))
        if TABLE == MATRIX:
            ahead = tl.load(
                logits + next_row.to(tl.int64) * classes + column, mask=inside & (next_row < rows), other=-float("inf")
            )
        if PHASE != USE:
            if next_row < rows:
                if TABLE == MATRIX:
                    own_row = table + tl.where(next_known, next_y, 0) * classes
                    q = tl.load(own_row + column, mask=inside, other=0.0).to(tl.float32)
                if NUMBERS > 2:
                    sharpness = tl.load(numbers + (next_row // rows_per_number) * NUMBERS + 2)
                publish(
                    ahead, sums, arrivals, next_row, part, classes, inside, q, w, sharpness,
                    KIND, TABLE, WEIGHT, ADAPTIVE, MASKED, PARTS, BLOCK,
                )  # fmt: skip
        later = ahead
        if TABLE != MATRIX:
            later_row = next_row + groups
            later = tl.load(
                logits + later_row.to(tl.int64) * classes + column, mask=inside & (later_row < rows), other=-float("inf")
            )

        if PHASE != PUBLISH:
            if NUMBERS > 0:
                own_numbers = numbers + (row // rows_per_number) * NUMBERS
                a0 = tl.load(own_numbers)
                if NUMBERS > 1:
                    a1 = tl.load(own_numbers + 1)
                if NUMBERS > 2:
                    a2 = tl.load(own_numbers + 2)
                if NUMBERS > 3:
                    a3 = tl.load(own_numbers + 3)
            label = tl.where(known, y, 0)
            kept = y != ignore_index
            wy = 1.0
            qy = 0.0
            if WEIGHT:
                wy = tl.load(weight + label).to(tl.float32)
            if TABLE == VECTOR:
                qy = tl.load(table + label).to(tl.float32)
            if TABLE == MATRIX:
                own_row = table + label * classes
                q = tl.load(own_row + column, mask=inside, other=0.0).to(tl.float32)
                qy = tl.load(own_row + label).to(tl.float32)
            m, s0, s1, s2, s3, s4 = collect(sums, arrivals, row, a2, KIND, WEIGHT, PARTS, PARTS_PADDED)
            at_label = number(zy)
            loss, _log_s, ca, cb, cc, ce, cm, cy = settle(
                s0, s1, s2, s3, s4, at_label * LOG2E - m, wy, a0, a1, a2, a3, a4, classes, log_classes,
                KIND, TABLE, WEIGHT, ADAPTIVE, False, REPORT_KL,
            )  # fmt: skip
            if LOSS != NOWHERE:
                if part == 0:
                    tl.store(losses + row, tl.where(kept, loss, 0.0))
            if FACTOR == UPSTREAM:
                factor = tl.load(factors + row)
            if GRADIENT:
                begin = row.to(tl.int64) * classes
                row_factor = tl.where(known, factor, float("nan"))
                ca, cb, cc, ce, cm, cy = fold(ca, cb, cc, ce, cm, cy, row_factor, s0, s1, s2, KIND, False)
                ey, y1, y2, _y3, _y4 = contributions(
                    at_label, known, qy, wy, at_label, m, m, a2, a3, KIND, TABLE, WEIGHT, False, False
                )
                gy = gradient_of(at_label, qy, wy, at_label, ey, y1, y2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, False) - cy
                z = number(raw)
                e, c1, c2, _c3, _c4 = contributions(z, inside, q, w, z, m, m, a2, a3, KIND, TABLE, WEIGHT, False, False)
                g = gradient_of(z, q, w, z, e, c1, c2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, False)
                g = tl.where(kept, g, 0.0)
                tl.store(gradient + begin + column, g.to(gradient.dtype.element_ty), mask=inside)
                tl.debug_barrier()
                at_home = known & (y >= part * BLOCK) & (y < part * BLOCK + BLOCK)
                tl.store(gradient + begin + label, gy.to(gradient.dtype.element_ty), mask=at_home)
        raw = ahead
        ahead = later
        row = next_row
        y = next_y
        known = next_known
        zy = next_zy
