"""The kernel for long rows and for any layout: programs sweep over a row, or over their part of it, there and back.

A part that is one stretch stays in registers, and nothing is read twice (HELD). Otherwise the first sweep gathers the
sums against the largest logit of the first stretch. Should a later one be so much larger
that a sum overflows, the true maximum is looked up and the sweep repeated. Programs that share a row then exchange
their sums. The second sweep writes the gradient in the opposite order; parts are so small that all those under way
together fit into the cache, and most logits are read from memory once only.

Waiting for each other is safe because programs start in the order of their numbers and those that share a row are
neighbours: the earliest unfinished group is always complete, finishes, and makes room. Where programs do not run side
by side at all (Triton's interpreter), the two sweeps are launched one after the other.
"""

import triton
import triton.language as tl

from softtargets.losses.kernels import rules
from softtargets.losses.kernels.tile import COUNTED, NOWHERE, UPSTREAM, class_offset, own_value, row_offset

# A sum beyond this may be about to overflow.
LARGEST_SUM = tl.constexpr(1.0e30)

# What a launch does.
TOGETHER = tl.constexpr(0)
PUBLISH = tl.constexpr(1)
USE = tl.constexpr(2)

# Numbers published for each part: two maxima and five sums, padded.
FIELDS = tl.constexpr(8)


@triton.jit
def publish(
    sums, arrivals, row, part, m, mt, s0, s1, s2, s3, s4, own_classes,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Let the other parts of a row have the sums of this one."""
    if ((KIND == rules.MIXTURE) and (TABLE == rules.UNIFORM)) and (not WEIGHT):
        s1 = own_classes.to(tl.float32)  # what a shift of the maximum is multiplied by
    own = sums + (row * PARTS + part) * FIELDS
    tl.store(own, m)
    tl.store(own + 1, mt)
    tl.store(own + 2, s0)
    tl.store(own + 3, s1)
    tl.store(own + 4, s2)
    tl.store(own + 5, s3)
    tl.store(own + 6, s4)
    tl.debug_barrier()
    tl.atomic_add(arrivals + row, 1, sem="release")


@triton.jit
def collect(
    sums, arrivals, row, sharpness, own,
    KIND: tl.constexpr, WEIGHT: tl.constexpr, OWN: tl.constexpr, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr,
):  # fmt: skip
    """Wait for all parts of a row; its maxima, and the five sums moved to those."""
    arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
    while arrived < PARTS:
        arrived = tl.atomic_add(arrivals + row, 0, sem="acquire")
    parts = tl.arange(0, PARTS_PADDED)
    there = parts < PARTS
    every = sums + (row * PARTS + parts) * FIELDS
    each_m = tl.load(every, mask=there, other=rules.LEAST, cache_modifier=".cg")
    each_mt = tl.load(every + 1, mask=there, other=rules.LEAST, cache_modifier=".cg")
    each0 = tl.load(every + 2, mask=there, other=0.0, cache_modifier=".cg")
    each1 = tl.load(every + 3, mask=there, other=0.0, cache_modifier=".cg")
    each2 = tl.load(every + 4, mask=there, other=0.0, cache_modifier=".cg")
    each3 = tl.load(every + 5, mask=there, other=0.0, cache_modifier=".cg")
    each4 = tl.load(every + 6, mask=there, other=0.0, cache_modifier=".cg")
    m = tl.max(each_m, axis=0)
    mt = tl.max(each_mt, axis=0)
    shift = each_m - m
    scale = rules.exp2(shift)
    s0 = tl.sum(scale * each0, axis=0)
    s1 = tl.sum(each1, axis=0)
    s2, s3, s4 = s0, s0, s0
    if KIND == rules.MIXTURE:
        s2 = tl.sum(each2 + shift * each1, axis=0)
    if (KIND == rules.PENALTY) or (KIND == rules.LABO):
        s1 = tl.sum(scale * (each1 + shift * each0), axis=0)
    if KIND == rules.LABO:
        soft_scale = rules.exp2(shift * sharpness)
        s2 = tl.sum(soft_scale * each2, axis=0)
        if WEIGHT:
            s3 = tl.sum(soft_scale * (each3 + shift * each4), axis=0)
            s4 = tl.sum(soft_scale * each4, axis=0)
        else:
            s3 = tl.sum(soft_scale * (each3 + shift * each2), axis=0)
    if KIND == rules.DISTILLATION:
        if OWN:
            s1 = tl.sum(rules.exp2(shift * own) * each1, axis=0)
        shift_t = (each_mt - mt) * sharpness
        scale_t = rules.exp2(shift_t)
        s2 = tl.sum(scale_t * each2, axis=0)
        s3 = tl.sum(scale_t * (each3 + shift * each2), axis=0)
    return m, mt, s0, s1, s2, s3, s4


@triton.jit
def read_stretch(
    logits, table, weight, teacher, k, y, classes, z_class, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, DENSE: tl.constexpr,
):  # fmt: skip
    """Logits, soft target, class weights and teacher of the classes k; what a rule does not use is a copy."""
    inside = k < classes
    z = rules.as_single(tl.load(logits + class_offset(k, z_class, DENSE), mask=inside, other=-float("inf")))
    q, w, t = z, z, z
    if KIND == rules.MIXTURE:
        if TABLE == rules.VECTOR:
            q = tl.load(table + k, mask=inside, other=0.0).to(tl.float32)
        if TABLE == rules.MATRIX:
            q = tl.load(table + y.to(tl.int64) * classes + k, mask=inside, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + k, mask=inside, other=0.0).to(tl.float32)
    if (KIND == rules.DISTILLATION) or (KIND == rules.MATCHING):
        t = rules.as_single(
            tl.load(teacher + class_offset(k, t_class, DENSE), mask=inside, other=-float("inf"))
        )
    return inside, z, q, w, t


@triton.jit(do_not_specialize=["rows", "ignore_index", "rows_per_value"])
def sweep_kernel(
    logits, target, table, weight, teacher, values, factors, losses, gradient, sums, arrivals,
    rows, class_units, inner, log_classes, ignore_index, rows_per_value,
    n0, n1, n2, n3,
    z_outer, z_inner, z_class, g_outer, g_inner, g_class, t_outer, t_inner, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, VALUES: tl.constexpr,
    ADAPTIVE: tl.constexpr, OWN: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    DENSE: tl.constexpr, UNIT: tl.constexpr, DEPTH: tl.constexpr, LANES: tl.constexpr,
    STAGES: tl.constexpr, MASKED: tl.constexpr, PARTS: tl.constexpr, PARTS_PADDED: tl.constexpr, PHASE: tl.constexpr,
    HELD: tl.constexpr,
):  # fmt: skip
    """Loss and gradient of (a part of) one row, in stretches of DEPTH x LANES classes; every lane has its own sums."""
    classes = class_units * UNIT
    row = tl.program_id(0) // PARTS
    part = tl.program_id(0) % PARTS
    y = tl.load(target + row)
    kept = y != ignore_index
    known = kept & (y >= 0) & (y < classes)
    y = tl.where(known, y, 0)
    logits += row_offset(row, inner, z_outer, z_inner, classes, DENSE)
    teacher_row = teacher
    if (KIND == rules.DISTILLATION) or (KIND == rules.MATCHING):
        teacher_row += row_offset(row, inner, t_outer, t_inner, classes, DENSE)
    if GRADIENT:
        gradient += row_offset(row, inner, g_outer, g_inner, classes, DENSE)
    lane = tl.arange(0, LANES)
    all_stretches = tl.cdiv(classes, DEPTH * LANES)
    share = tl.cdiv(all_stretches, PARTS)
    first = part * share
    last = tl.minimum(first + share, all_stretches)

    if kept:
        a0 = own_value(values, row, rows_per_value, n0 + 0.0, None, None, 0, VALUES)
        a1 = own_value(values, row, rows_per_value, n1 + 0.0, None, None, 1, VALUES)
        a2 = own_value(values, row, rows_per_value, n2 + 0.0, None, None, 2, VALUES)
        a3 = own_value(values, row, rows_per_value, n3 + 0.0, None, None, 3, VALUES)
        wy, qy, ty = 1.0, 0.0, 0.0
        if WEIGHT:
            wy = tl.load(weight + y).to(tl.float32)
        if KIND == rules.MIXTURE:
            if TABLE == rules.VECTOR:
                qy = tl.load(table + y).to(tl.float32)
            if TABLE == rules.MATRIX:
                qy = tl.load(table + y.to(tl.int64) * classes + y).to(tl.float32)
        if (KIND == rules.DISTILLATION) or (KIND == rules.MATCHING):
            ty = rules.as_single(tl.load(teacher_row + class_offset(y, t_class, DENSE)))
        zy = rules.as_single(
            tl.load(logits + class_offset(y, z_class, DENSE), mask=known, other=float("nan"))
        )

        inside, z, q, w, t = read_stretch(
            logits, table, weight, teacher_row, first * DEPTH * LANES + lane, y, classes, z_class, t_class,
            KIND, TABLE, WEIGHT, DENSE,
        )  # fmt: skip
        m = rules.peak(tl.max(z, axis=0))
        mt = rules.peak(tl.max(t, axis=0))
        s0, s1, s2, s3, s4 = 0.0, 0.0, 0.0, 0.0, 0.0
        if HELD:
            e, c1, c2, c3, c4 = rules.contributions(
                z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, MASKED
            )
            s0, s1, s2, s3, s4 = rules.total(e, c1, c2, c3, c4, 0, KIND, TABLE, WEIGHT, ADAPTIVE)
        else:
            tries = 0
            if PHASE == USE:
                tries = 2
            while tries < 2:
                v0 = tl.zeros([LANES], tl.float32)
                v1, v2, v3, v4 = v0, v0, v0, v0
                for stretch in tl.range(first, last, num_stages=STAGES):
                    for step in tl.static_range(DEPTH):
                        k = (stretch * DEPTH + step) * LANES + lane
                        inside, z, q, w, t = read_stretch(
                            logits, table, weight, teacher_row, k, y, classes, z_class, t_class,
                            KIND, TABLE, WEIGHT, DENSE,
                        )  # fmt: skip
                        e, c1, c2, c3, c4 = rules.contributions(
                            z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, MASKED
                        )
                        v0 += e
                        v1 += c1
                        v2 += c2
                        v3 += c3
                        v4 += c4
                s0, s1, s2, s3, s4 = rules.total(v0, v1, v2, v3, v4, 0, KIND, TABLE, WEIGHT, ADAPTIVE)
                tries += 1
                largest = s0
                if (KIND == rules.LABO) or (KIND == rules.DISTILLATION):
                    largest = tl.maximum(largest, s2)
                if OWN:
                    largest = tl.maximum(largest, s1)
                if largest > LARGEST_SUM:
                    top = tl.full([LANES], rules.LEAST, tl.float32)
                    top_t = tl.full([LANES], rules.LEAST, tl.float32)
                    for stretch in range(first * DEPTH, last * DEPTH):
                        _inside, z, _q, _w, t = read_stretch(
                            logits, table, weight, teacher_row, stretch * LANES + lane, y, classes, z_class, t_class,
                            KIND, TABLE, WEIGHT, DENSE,
                        )  # fmt: skip
                        top = tl.maximum(top, z)
                        top_t = tl.maximum(top_t, t)
                    m = rules.peak(tl.max(top, axis=0))
                    mt = rules.peak(tl.max(top_t, axis=0))
                else:
                    tries = 2

        if PARTS > 1:
            if PHASE != USE:
                own_classes = tl.maximum(tl.minimum(last * DEPTH * LANES, classes) - first * DEPTH * LANES, 0)
                publish(
                    sums, arrivals, row, part, m, mt, s0, s1, s2, s3, s4, own_classes, KIND, TABLE, WEIGHT, PARTS
                )  # fmt: skip
            if PHASE != PUBLISH:
                m, mt, s0, s1, s2, s3, s4 = collect(
                    sums, arrivals, row, a2, a3, KIND, WEIGHT, OWN, PARTS, PARTS_PADDED
                )

        if PHASE != PUBLISH:
            s0 = tl.where(m <= rules.NOTHING, float("nan"), s0)
            loss, _log_s, ca, cb, cc, ce, cm, cy = rules.settle(
                s0, s1, s2, s3, s4, zy * rules.LOG2E - m, wy, a0, a1, a2, a3, classes, log_classes,
                KIND, TABLE, WEIGHT, ADAPTIVE, OWN, REPORT_KL,
            )  # fmt: skip
            factor = 1.0
            if FACTOR == COUNTED:
                factor = 1.0 / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))
            if FACTOR == UPSTREAM:
                factor = tl.load(factors + row)
            if LOSS != NOWHERE:
                if part == 0:
                    tl.store(losses + row, loss)
            if GRADIENT:
                factor = tl.where(known, factor, float("nan"))
                ca, cb, cc, ce, cm, cy = rules.fold(ca, cb, cc, ce, cm, cy, factor, s0, s1, s2, KIND, OWN)
                if HELD:
                    e, c1, c2, _c3, _c4 = rules.contributions(
                        z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
                    )
                    g = rules.gradient(z, q, w, t, e, c1, c2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN)
                    g_place = gradient + class_offset(first * LANES + lane, g_class, DENSE)
                    tl.store(g_place, g.to(gradient.dtype.element_ty), mask=inside)
                else:
                    for turn in tl.range(first, last, num_stages=STAGES):
                        for step in tl.static_range(DEPTH):
                            k = ((first + last - 1 - turn) * DEPTH + step) * LANES + lane
                            inside, z, q, w, t = read_stretch(
                                logits, table, weight, teacher_row, k, y, classes, z_class, t_class,
                                KIND, TABLE, WEIGHT, DENSE,
                            )  # fmt: skip
                            e, c1, c2, _c3, _c4 = rules.contributions(
                                z, inside, q, w, t, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
                            )
                            g = rules.gradient(
                                z, q, w, t, e, c1, c2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN
                            )
                            g_place = gradient + class_offset(k, g_class, DENSE)
                            g = g.to(gradient.dtype.element_ty)
                            tl.store(g_place, g, mask=inside, eviction_policy="evict_first")
                ey, cy1, cy2, _cy3, _cy4 = rules.contributions(
                    zy, known, qy, wy, ty, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
                )
                gy = rules.gradient(
                    zy, qy, wy, ty, ey, cy1, cy2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN
                )
                gy -= cy
                home = known & (y >= first * DEPTH * LANES) & (y < last * DEPTH * LANES)
                tl.debug_barrier()
                place = gradient + class_offset(y, g_class, DENSE)
                tl.store(place, gy.to(gradient.dtype.element_ty), mask=home)
    elif PHASE != PUBLISH:
        if LOSS != NOWHERE:
            tl.store(losses + row, 0.0)
        if GRADIENT:
            for stretch in range(first * DEPTH, last * DEPTH):
                k = stretch * LANES + lane
                nothing = tl.zeros([LANES], gradient.dtype.element_ty)
                tl.store(gradient + class_offset(k, g_class, DENSE), nothing, mask=k < classes)
