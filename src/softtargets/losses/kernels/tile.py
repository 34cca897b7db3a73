"""The kernel for rows that one program can hold in registers: every logit is read once, whatever is asked for.

Rows are read in several chunks of columns, one beside the other: then fewer threads share a row, what is computed once
per row is computed for several rows at a time, and only the last chunk has to ask where the row ends.
"""

import triton
import triton.language as tl

from softtargets.losses.kernels import rules
from softtargets.losses.kernels.reductions import label_weights

# What the gradient of a row is multiplied by, and its loss in a sum.
ONE = tl.constexpr(0)  # reduction="sum"
COUNTED = tl.constexpr(1)  # reduction="mean": one over the sum of the partial counts
COUNTING = tl.constexpr(2)  # the same where every program counts all rows itself
UPSTREAM = tl.constexpr(3)  # a number per row, from the layer above

# Where the loss goes.
NOWHERE = tl.constexpr(0)
PER_ROW = tl.constexpr(1)
PER_PROGRAM = tl.constexpr(2)


@triton.jit
def row_offset(row, inner, outer_stride, inner_stride, classes, DENSE: tl.constexpr):
    """Where a row begins: rows lie one after another, or are spread over (N, C, d) by strides."""
    if DENSE:
        return row.to(tl.int64) * classes
    else:
        return (row // inner).to(tl.int64) * outer_stride + (row % inner).to(tl.int64) * inner_stride


@triton.jit
def class_offset(column, stride, DENSE: tl.constexpr):
    """Where a class lies within its row."""
    return column if DENSE else column.to(tl.int64) * stride


@triton.jit
def own_value(values, row, rows_per_value, n, kept, other, PLACE: tl.constexpr, VALUES: tl.constexpr):
    """A hyper-parameter of each row: n, or where each run has its own what is on the device."""
    if VALUES > PLACE:
        return tl.load(values + (row // rows_per_value) * VALUES + PLACE, mask=kept, other=other)
    else:
        return n


@triton.jit
def read_chunk(
    z_row, q_row, weight, t_row, kept, column, classes, z_class, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, DENSE: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """Logits, soft target, class weights and teacher of some classes; what a rule does not use is a copy."""
    inside = column < classes
    read = kept[:, None]
    if MASKED:
        read = read & inside[None, :]
    z = rules.as_single(
        tl.load(
            z_row[:, None] + class_offset(column, z_class, DENSE)[None, :], mask=read, other=-float("inf")
        )
    )
    q, w, t = z, z, z
    if KIND == rules.MIXTURE:
        if TABLE == rules.VECTOR:
            q = tl.load(q_row + column, mask=inside, other=0.0).to(tl.float32)[None, :]
        if TABLE == rules.MATRIX:
            q = tl.load(q_row[:, None] + column[None, :], mask=read, other=0.0).to(tl.float32)
    if WEIGHT:
        w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)[None, :]
    if (KIND == rules.DISTILLATION) or (KIND == rules.MATCHING):
        t_place = t_row[:, None] + class_offset(column, t_class, DENSE)[None, :]
        t = rules.as_single(tl.load(t_place, mask=read, other=-float("inf")))
    return inside[None, :], z, q, w, t


@triton.jit
def write_chunk(written, g, column, classes, g_class, exists, DENSE: tl.constexpr, MASKED: tl.constexpr):
    """Store the gradient of some classes."""
    write = exists[:, None]
    if MASKED:
        write = write & (column < classes)[None, :]
    place = written[:, None] + class_offset(column, g_class, DENSE)[None, :]
    tl.store(place, g.to(written.dtype.element_ty), mask=write)


@triton.jit(do_not_specialize=["rows", "ignore_index", "rows_per_value"])
def tile_kernel(
    logits, target, table, weight, teacher, values, factors, losses, gradient,
    rows, class_units, inner, log_classes, ignore_index, rows_per_value,
    n0, n1, n2, n3,
    z_outer, z_inner, z_class, g_outer, g_inner, g_class, t_outer, t_inner, t_class,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, VALUES: tl.constexpr,
    ADAPTIVE: tl.constexpr, OWN: tl.constexpr, REPORT_KL: tl.constexpr,
    FACTOR: tl.constexpr, PARTIALS: tl.constexpr, LOSS: tl.constexpr, GRADIENT: tl.constexpr,
    DENSE: tl.constexpr, UNIT: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr, WHOLE: tl.constexpr, SCATTER: tl.constexpr,
):  # fmt: skip
    """Losses and gradients of whole rows, ROWS at a time; WHOLE of the CHUNKS have BLOCK classes, the last may have less."""
    classes = class_units * UNIT  # so that the compiler knows what the rows are aligned to
    lane = tl.arange(0, BLOCK)
    mean_factor = 1.0
    if FACTOR == COUNTED:
        mean_factor = 1.0 / tl.sum(tl.load(factors + tl.arange(0, PARTIALS)))
    if FACTOR == COUNTING:
        mean_factor = 1.0 / label_weights(target, weight, 0, 128, rows, classes, ignore_index, WEIGHT, 128)
    summed = tl.zeros([ROWS], tl.float32)
    for begin_row in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = begin_row + tl.arange(0, ROWS)
        exists = row < rows
        y = tl.load(target + row, mask=exists, other=ignore_index)
        kept = exists & (y != ignore_index)
        known = kept & (y >= 0) & (y < classes)
        y = tl.where(known, y, 0).to(tl.int32)
        z_row = logits + row_offset(row, inner, z_outer, z_inner, classes, DENSE)
        zy = rules.as_single(tl.load(z_row + class_offset(y, z_class, DENSE), mask=known, other=float("nan")))

        a0 = own_value(values, row, rows_per_value, tl.full([ROWS], n0, tl.float32), kept, 0.0, 0, VALUES)
        a1 = own_value(values, row, rows_per_value, tl.full([ROWS], n1, tl.float32), kept, 0.0, 1, VALUES)
        a2 = own_value(values, row, rows_per_value, tl.full([ROWS], n2, tl.float32), kept, 0.0, 2, VALUES)
        a3 = own_value(values, row, rows_per_value, tl.full([ROWS], n3, tl.float32), kept, 0.0, 3, VALUES)

        # What belongs to the label alone: its weight, its part of q, what the teacher says of it.
        wy = tl.full([ROWS], 1.0, tl.float32)
        qy, ty, t_row = a0, a0, z_row
        q_row = table
        if WEIGHT:
            wy = tl.load(weight + y, mask=known, other=0.0).to(tl.float32)
        if KIND == rules.MIXTURE:
            if TABLE == rules.VECTOR:
                qy = tl.load(table + y, mask=known, other=0.0).to(tl.float32)
            if TABLE == rules.MATRIX:
                q_row = table + y.to(tl.int64) * classes
                qy = tl.load(q_row + y, mask=known, other=0.0).to(tl.float32)
        if (KIND == rules.DISTILLATION) or (KIND == rules.MATCHING):
            t_row = teacher + row_offset(row, inner, t_outer, t_inner, classes, DENSE)
            ty = rules.as_single(tl.load(t_row + class_offset(y, t_class, DENSE), mask=known, other=0.0))

        # Every chunk is read once, and its numbers are kept for all that follows.
        chunks = ()
        for chunk in tl.static_range(CHUNKS):
            chunks = chunks + (  # noqa: RUF005 (Triton does not know unpacking)
                read_chunk(
                    z_row, q_row, weight, t_row, kept, chunk * BLOCK + lane, classes, z_class, t_class,
                    KIND, TABLE, WEIGHT, DENSE, chunk >= WHOLE,
                ),
            )  # fmt: skip
        top = chunks[0][1]
        top_t = chunks[0][4]
        for chunk in tl.static_range(1, CHUNKS):
            top = tl.maximum(top, chunks[chunk][1])
            top_t = tl.maximum(top_t, chunks[chunk][4])
        m = rules.peak(tl.max(top, axis=1))
        mt = m
        if KIND == rules.DISTILLATION:
            mt = rules.peak(tl.max(top_t, axis=1))

        v0 = tl.zeros([ROWS, BLOCK], tl.float32)
        v1, v2, v3, v4 = v0, v0, v0, v0
        parts = ()
        for chunk in tl.static_range(CHUNKS):
            inside, z, q, w, t = chunks[chunk]
            e, c1, c2, c3, c4 = rules.contributions(
                z, inside, q, w, t, m[:, None], mt[:, None], a2[:, None], a3[:, None],
                KIND, TABLE, WEIGHT, OWN, chunk >= WHOLE,
            )  # fmt: skip
            v0 += e
            v1 += c1
            v2 += c2
            v3 += c3
            v4 += c4
            parts = parts + ((e, c1, c2),)  # noqa: RUF005
        s0, s1, s2, s3, s4 = rules.total(v0, v1, v2, v3, v4, 1, KIND, TABLE, WEIGHT, ADAPTIVE)
        s0 = tl.where(m <= rules.NOTHING, float("nan"), s0)
        loss, _log_s, ca, cb, cc, ce, cm, cy = rules.settle(
            s0, s1, s2, s3, s4, zy * rules.LOG2E - m, wy, a0, a1, a2, a3, classes, log_classes,
            KIND, TABLE, WEIGHT, ADAPTIVE, OWN, REPORT_KL,
        )  # fmt: skip

        factor = tl.full([ROWS], 1.0, tl.float32) * mean_factor
        if FACTOR == UPSTREAM:
            factor = tl.load(factors + row, mask=exists, other=0.0)
        if LOSS == PER_ROW:
            tl.store(losses + row, tl.where(kept, loss, 0.0), mask=exists)
        if LOSS == PER_PROGRAM:
            summed += tl.where(kept, loss, 0.0)

        if GRADIENT:
            ca, cb, cc, ce, cm, cy = rules.fold(ca, cb, cc, ce, cm, cy, factor, s0, s1, s2, KIND, OWN)
            written = gradient + row_offset(row, inner, g_outer, g_inner, classes, DENSE)
            # A label that is no class makes NaN of the row; an ignored one has the gradient 0, whatever its logits.
            ca = tl.where(known, ca, tl.where(kept, float("nan"), 0.0))
            cb = tl.where(kept, cb, 0.0)
            cc = tl.where(kept, cc, 0.0)
            ce = tl.where(kept, ce, 0.0)
            cm = tl.where(kept, cm, 0.0)
            cy = tl.where(kept, cy, 0.0)
            for chunk in tl.static_range(CHUNKS):
                _inside, z, q, w, t = chunks[chunk]
                e, c1, c2 = parts[chunk]
                g = rules.gradient(
                    z, q, w, t, e, c1, c2, ca[:, None], cb[:, None], cc[:, None], ce[:, None], cm[:, None],
                    KIND, TABLE, WEIGHT, OWN,
                )  # fmt: skip
                if not SCATTER:
                    g = tl.where((chunk * BLOCK + lane)[None, :] == y[:, None], g - cy[:, None], g)
                write_chunk(written, g, chunk * BLOCK + lane, classes, g_class, exists, DENSE, chunk >= WHOLE)
            if SCATTER:
                # The label's own entry is written once more: cheaper than asking of many classes whether they are it.
                ey, cy1, cy2, _cy3, _cy4 = rules.contributions(
                    zy, known, qy, wy, ty, m, mt, a2, a3, KIND, TABLE, WEIGHT, OWN, False
                )
                gy = rules.gradient(
                    zy, qy, wy, ty, ey, cy1, cy2, ca, cb, cc, ce, cm, KIND, TABLE, WEIGHT, OWN
                )
                tl.debug_barrier()
                place = written + class_offset(y, g_class, DENSE)
                tl.store(place, (gy - cy).to(gradient.dtype.element_ty), mask=known)
    if LOSS == PER_PROGRAM:
        summed = tl.sum(summed)
        if FACTOR == COUNTING:
            # Where nothing has weight the factor is infinite, and what is left of the sum has no mean.
            summed = tl.where(mean_factor == float("inf"), float("nan"), summed * mean_factor)
        tl.store(losses + tl.program_id(0), summed)
