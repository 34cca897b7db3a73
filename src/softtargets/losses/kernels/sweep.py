"""The kernel for rows of any length and layout: one program sweeps over its row, there and back.

The first sweep gathers the sums against the largest logit of the first stretch. Should a later one be so much larger
that a sum overflows, the true maximum is looked up and the sweep repeated. The second writes the gradient in the
opposite order, so that it begins with what the first one read last and may find it in the cache.
"""

import triton
import triton.language as tl

from softtargets.losses.kernels.rules import (
    DISTILLATION,
    LABO,
    LEAST,
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
from softtargets.losses.kernels.tile import COUNTED, NOWHERE, UPSTREAM, class_offset, row_offset

# A sum beyond this may be about to overflow.
LARGEST_SUM = tl.constexpr(1.0e30)


@triton.jit
def read_stretch(
    logits, table, weight, teacher, k, y, classes, z_class, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, DENSE: tl.constexpr,
):  # fmt: skip
    """Logits, soft target, class weights and teacher of the classes k; what a rule does not use is a copy."""
    inside = k < classes
    z = number(tl.load(logits + class_offset(k, z_class, DENSE), mask=inside, other=-float("inf")))
    q = z
    w = z
    t = z
    if KIND == MIXTURE:
        if TABLE == VECTOR:
            q = tl.load(table + k, mask=inside, other=0.0).to(tl.float32)
        if TABLE == MATRIX:
            q = tl.load(table + y.to(tl.int64) * classes + k, mask=inside, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)
    if (KIND == DISTILLATION) or (KIND == MATCHING):
        t = number(tl.load(teacher + class_offset(k, t_class, DENSE), mask=inside, other=-float("inf")))
    return inside, z, q, w, t


@triton.jit
def sweep_kernel(
    logits, target, table, weight, teacher, numbers, factors, losses, gradient,
    rows, class_units, inner, log_classes, ignore_index, rows_per_number,
    n0, n1, n2, n3, n4,
    z_outer, z_inner, z_class, g_outer, g_inner, g_class, t_outer, t_inner, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, NUMBERS: tl.constexpr,
    ADAPTIVE: tl.constexpr, OWN: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    DENSE: tl.constexpr, UNIT: tl.constexpr, DEPTH: tl.constexpr, LANES: tl.constexpr,
    STAGES: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Loss and gradient of one row, in stretches of DEPTH x LANES classes; every lane keeps its own sums."""
    classes = class_units * UNIT
    row = tl.program_id(0)
    y = tl.load(target + row)
    kept = y != ignore_index
    known = kept & (y >= 0) & (y < classes)
    y = tl.where(known, y, 0)
    logits += row_offset(row, inner, z_outer, z_inner, classes, DENSE)
    teacher_row = teacher
    if (KIND == DISTILLATION) or (KIND == MATCHING):
        teacher_row += row_offset(row, inner, t_outer, t_inner, classes, DENSE)
    if GRADIENT:
        gradient += row_offset(row, inner, g_outer, g_inner, classes, DENSE)
    lane = tl.arange(0, LANES)
    stretches = tl.cdiv(classes, DEPTH * LANES)

    if kept:
        a0 = n0 + 0.0
        a1 = n1 + 0.0
        a2 = n2 + 0.0
        a3 = n3 + 0.0
        a4 = n4 + 0.0
        if NUMBERS > 0:
            own_numbers = numbers + (row // rows_per_number) * NUMBERS
            a0 = tl.load(own_numbers)
            if NUMBERS > 1:
                a1 = tl.load(own_numbers + 1)
            if NUMBERS > 2:
                a2 = tl.load(own_numbers + 2)
            if NUMBERS > 3:
                a3 = tl.load(own_numbers + 3)
            if NUMBERS > 4:
                a4 = tl.load(own_numbers + 4)
        wy = 1.0
        qy = 0.0
        ty = 0.0
        if WEIGHT:
            wy = tl.load(weight + y).to(tl.float32)
        if KIND == MIXTURE:
            if TABLE == VECTOR:
                qy = tl.load(table + y).to(tl.float32)
            if TABLE == MATRIX:
                qy = tl.load(table + y.to(tl.int64) * classes + y).to(tl.float32)
        if (KIND == DISTILLATION) or (KIND == MATCHING):
            ty = number(tl.load(teacher_row + class_offset(y, t_class, DENSE)))
        zy = number(tl.load(logits + class_offset(y, z_class, DENSE), mask=known, other=float("nan")))

        _inside, z, _q, _w, t = read_stretch(
            logits, table, weight, teacher_row, lane, y, classes, z_class, t_class, KIND, TABLE, WEIGHT, DENSE
        )
        m = tl.max(z, axis=0) * LOG2E
        mt = tl.max(t, axis=0) * LOG2E
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        s4 = 0.0
        tries = 0
        while tries < 2:
            v0 = tl.zeros([LANES], tl.float32)
            v1 = tl.zeros([LANES], tl.float32)
            v2 = tl.zeros([LANES], tl.float32)
            v3 = tl.zeros([LANES], tl.float32)
            v4 = tl.zeros([LANES], tl.float32)
            for stretch in tl.range(0, stretches, num_stages=STAGES):
                for step in tl.static_range(DEPTH):
                    k = (stretch * DEPTH + step) * LANES + lane
                    inside, z, q, w, t = read_stretch(
                        logits, table, weight, teacher_row, k, y, classes, z_class, t_class, KIND, TABLE, WEIGHT, DENSE
                    )
                    e, c1, c2, c3, c4 = contributions(
                        z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, MASKED
                    )
                    v0 += e
                    v1 += c1
                    v2 += c2
                    v3 += c3
                    v4 += c4
            s0, s1, s2, s3, s4 = total(v0, v1, v2, v3, v4, 0, KIND, TABLE, WEIGHT, ADAPTIVE)
            tries += 1
            largest = s0
            if (KIND == LABO) or (KIND == DISTILLATION):
                largest = tl.maximum(largest, s2)
            if OWN:
                largest = tl.maximum(largest, s1)
            if largest > LARGEST_SUM:
                top = tl.full([LANES], LEAST, tl.float32)
                top_t = tl.full([LANES], LEAST, tl.float32)
                for stretch in range(0, stretches * DEPTH):
                    _inside, z, _q, _w, t = read_stretch(
                        logits, table, weight, teacher_row, stretch * LANES + lane, y, classes, z_class, t_class,
                        KIND, TABLE, WEIGHT, DENSE,
                    )  # fmt: skip
                    top = tl.maximum(top, z)
                    top_t = tl.maximum(top_t, t)
                m = tl.max(top, axis=0) * LOG2E
                mt = tl.max(top_t, axis=0) * LOG2E
            else:
                tries = 2

        loss, _log_s, ca, cb, cc, ce, cm, cy = settle(
            s0, s1, s2, s3, s4, zy * LOG2E - m, wy, a0, a1, a2, a3, a4, classes, log_classes,
            KIND, TABLE, WEIGHT, ADAPTIVE, OWN, REPORT_KL,
        )  # fmt: skip
        factor = 1.0
        if FACTOR == COUNTED:
            factor = 1.0 / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))
        if FACTOR == UPSTREAM:
            factor = tl.load(factors + row)
        if LOSS != NOWHERE:
            tl.store(losses + row, loss)

        if GRADIENT:
            factor = tl.where(known, factor, float("nan"))
            ca, cb, cc, ce, cm, cy = fold(ca, cb, cc, ce, cm, cy, factor, s0, s1, s2, KIND, OWN)
            for turn in tl.range(0, stretches, num_stages=STAGES):
                for step in tl.static_range(DEPTH):
                    k = ((stretches - 1 - turn) * DEPTH + step) * LANES + lane
                    inside, z, q, w, t = read_stretch(
                        logits, table, weight, teacher_row, k, y, classes, z_class, t_class, KIND, TABLE, WEIGHT, DENSE
                    )
                    e, c1, c2, _c3, _c4 = contributions(
                        z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
                    )
                    g = gradient_of(z, q, w, t, e, c1, c2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN)
                    g_place = gradient + class_offset(k, g_class, DENSE)
                    tl.store(g_place, g.to(gradient.dtype.element_ty), mask=inside)
            ey, cy1, cy2, _cy3, _cy4 = contributions(
                zy, known, qy, wy, ty, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
            )
            gy = gradient_of(zy, qy, wy, ty, ey, cy1, cy2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN) - cy
            tl.debug_barrier()
            tl.store(gradient + class_offset(y, g_class, DENSE), gy.to(gradient.dtype.element_ty), mask=known)
    else:
        if LOSS != NOWHERE:
            tl.store(losses + row, 0.0)
        if GRADIENT:
            for stretch in range(0, stretches * DEPTH):
                k = stretch * LANES + lane
                nothing = tl.zeros([LANES], gradient.dtype.element_ty)
                tl.store(gradient + class_offset(k, g_class, DENSE), nothing, mask=k < classes)
