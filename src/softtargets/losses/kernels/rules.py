r"""What the kernels compute, row by row; shared by all of them.

With :math:`d_k = (z_k - m) / \log 2` (m the largest logit, or near it), the sums a rule needs are gathered in one
reading of the row. From them follow the loss and six coefficients, and with those the gradient of every class:

.. math:: A p_k + B p_k d_k - C q_k + E p'_k + M (z_k - t_k) - Y [k = y]

where p is softmax(z), q the soft part of the target, p' the prediction at the student's temperature, t the teacher.
All arithmetic is in single precision, whatever the logits are stored in. Nothing is infinite inside: -inf is read as
`LEAST`, whose exponential is 0 and which may be multiplied by 0; a loss that comes out beyond `HUGE` was infinite.
"""

import os

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
LEAST = tl.constexpr(-1.0e30)
HUGE = tl.constexpr(1.0e20)
# The largest logit where all are -inf, in units of log 2: far enough above those for their exponentials to be 0.
NOTHING = tl.constexpr(-1.0e29)

# The kinds of rule; their hyper-parameters n0, n1, ... are listed in `settle`.
MIXTURE = tl.constexpr(0)
PENALTY = tl.constexpr(1)
FOCAL = tl.constexpr(2)
LABO = tl.constexpr(3)
DISTILLATION = tl.constexpr(4)
MATCHING = tl.constexpr(5)

# Each kind by name: its number and how many hyper-parameters it has.
KINDS = {
    "mixture": (0, 2),
    "penalty": (1, 1),
    "focal": (2, 3),
    "labo": (3, 4),
    "distillation": (4, 4),
    "matching": (5, 2),
}

# Where q is read from.
UNIFORM = tl.constexpr(0)
VECTOR = tl.constexpr(1)
MATRIX = tl.constexpr(2)


if os.environ.get("TRITON_INTERPRET") == "1":

    @triton.jit
    def exp2(x):
        """2 to the power of x."""
        return tl.exp2(x)

else:

    @triton.jit
    def exp2(x):
        """2 to the power of x, 0 where that is below the smallest normal number: one instruction instead of four."""
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x.to(tl.float32)], tl.float32, True, 1
        )


@triton.jit
def as_single(value):
    """A logit as single precision, with LEAST for -inf; NaN stays."""
    return tl.maximum(value.to(tl.float32), LEAST, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def peak(largest):
    """The largest logit in units of log 2, or NOTHING.

    Never LEAST itself: a difference that should be 0 would be the error of a product, far above 1, because
    multiplication and subtraction are one instruction.
    """
    return tl.maximum(largest * LOG2E, NOTHING)


@triton.jit
def _add2(a0, a1, b0, b1):
    return a0 + b0, a1 + b1


@triton.jit
def _add3(a0, a1, a2, b0, b1, b2):
    return a0 + b0, a1 + b1, a2 + b2


@triton.jit
def _add4(a0, a1, a2, a3, b0, b1, b2, b3):
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3


@triton.jit
def _add5(a0, a1, a2, a3, a4, b0, b1, b2, b3, b4):
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4


@triton.jit
def total(
    c0, c1, c2, c3, c4, AXIS: tl.constexpr,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, ADAPTIVE: tl.constexpr,
):  # fmt: skip
    """Those of the five sums that a rule uses, in one reduction; the rest are copies of the first."""
    # Pairs in parentheses here and elsewhere: Triton 3.3 knows no chains of "and".
    if ((KIND == MIXTURE) and (TABLE == UNIFORM)) and (not WEIGHT):
        s0, s2 = tl.reduce((c0, c2), AXIS, _add2)
        s1, s3, s4 = s0, s0, s0
    elif KIND == MIXTURE:
        s0, s1, s2 = tl.reduce((c0, c1, c2), AXIS, _add3)
        s3, s4 = s0, s0
    elif KIND == FOCAL:
        s0 = tl.sum(c0, axis=AXIS)
        s1, s2, s3, s4 = s0, s0, s0, s0
    elif (KIND == PENALTY) or (KIND == MATCHING):
        s0, s1 = tl.reduce((c0, c1), AXIS, _add2)
        s2, s3, s4 = s0, s0, s0
    elif ((KIND == LABO) and (not WEIGHT)) and (not ADAPTIVE):
        s0, s2, s3 = tl.reduce((c0, c2, c3), AXIS, _add3)
        s1, s4 = s0, s0
    elif (KIND == LABO) and WEIGHT:
        s0, s1, s2, s3, s4 = tl.reduce((c0, c1, c2, c3, c4), AXIS, _add5)
    else:
        s0, s1, s2, s3 = tl.reduce((c0, c1, c2, c3), AXIS, _add4)
        s4 = s0
    return s0, s1, s2, s3, s4


@triton.jit
def contributions(
    z, valid, q, w, t, m, mt, sharpness, own,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, OWN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """What each class adds to the five sums; those a rule does not use are copies of the first.

    m and mt are in units of log 2 already: one multiplication and addition leads to an exponent of 2, and what is
    rounded in m is the same for all classes and drops out.
    """
    d = z * LOG2E - m
    e = exp2(d)
    c1, c2, c3, c4 = e, e, e, e
    if KIND == MIXTURE:
        if TABLE == UNIFORM:
            c2 = d
            if WEIGHT:
                c1 = w + tl.zeros_like(d)
                c2 = d * w
            if MASKED:
                c2 = tl.where(valid, c2, 0.0)
        else:
            if WEIGHT:
                q = q * w
            c1 = q + tl.zeros_like(d)
            c2 = q * d
    if KIND == PENALTY:
        c1 = e * d
    if KIND == LABO:
        c1 = e * d
        c2 = exp2(d * sharpness)
        if MASKED:
            c2 = tl.where(valid, c2, 0.0)
        if WEIGHT:
            c4 = c2 * w
            c3 = c4 * d
        else:
            c3 = c2 * d
    if KIND == DISTILLATION:
        if OWN:
            c1 = exp2(d * own)
        scaled = (t * LOG2E - mt) * sharpness
        c2 = exp2(scaled)
        if MASKED:
            c2 = tl.where(valid, c2, 0.0)
        c3 = c2 * d
    if KIND == MATCHING:
        c1 = 0.5 * (z - t) * (z - t)
        if MASKED:
            c1 = tl.where(valid, c1, 0.0)
    return e, c1, c2, c3, c4


@triton.jit
def settle(
    s0, s1, s2, s3, s4, dy, wy, n0, n1, n2, n3, classes, log_classes,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, ADAPTIVE: tl.constexpr, OWN: tl.constexpr,
    REPORT_KL: tl.constexpr,
):  # fmt: skip
    """From the sums to the loss of a row and the coefficients A, B, C, E, M, Y of its gradient."""
    log_s = tl.log2(s0) * LN2
    hard = (tl.log2(s0) - dy) * LN2
    zero = log_s * 0.0
    b, c, e, mm = zero, zero, zero, zero
    if KIND == MIXTURE:
        # n0 = hard mass, n1 = soft mass; they need not sum to 1.
        mass = zero + 1.0
        mean = s2 * LN2
        c = zero + n1
        if TABLE == UNIFORM:
            each = 1.0 / classes
            mean = mean * each
            c = c * each
            if WEIGHT:
                mass = s1 * each
        else:
            mass = s1
        y = n0 * wy
        loss = y * hard + n1 * (mass * log_s - mean)
        a = y + n1 * mass
    if KIND == PENALTY:
        # n0 = beta.
        entropy = log_s - s1 / s0 * LN2
        loss = wy * (hard - n0 * entropy)
        a = wy * (1.0 + n0 * (entropy - log_s))
        b = wy * n0
        y = wy
    if KIND == FOCAL:
        # n0 = gamma, n1 = slope inside the factor (1 + slope * p) ** gamma, n2 = 1 if the factor is a constant.
        log_p = -hard
        p = exp2(log_p * LOG2E)
        # 1 - p by its series where p is near 1: the difference itself would have no correct digits there.
        series = -log_p * (1.0 + log_p * 0.5 * (1.0 + log_p * (1.0 / 3.0) * (1.0 + log_p * 0.25)))
        base = tl.where((n1 == -1.0) & (log_p > -0.03), series, 1.0 + n1 * p)
        power = exp2(n0 * tl.log2(tl.maximum(base, 1.0e-37)))
        factor = tl.where(base > 0.0, power, tl.where(n0 == 0.0, 1.0, 0.0))
        factor = tl.where(hard == hard, factor, hard)
        loss = wy * factor * hard
        ratio = tl.where(base > 0.0, log_p / base, 0.0)
        a = wy * factor * (1.0 + tl.where(n2 == 0.0, n0 * n1 * p * ratio, 0.0))
        y = a
    if KIND == LABO:
        # n0, n1 = offset and slope of alpha over relative entropy, n2 = 1 / tau, n3 = 1 to add the KL term.
        alpha = zero + n0
        if ADAPTIVE:
            alpha = n0 + n1 * (log_s - s1 / s0 * LN2) * (1.0 / tl.maximum(log_classes, 1.0e-30))
        mass = zero + 1.0
        if WEIGHT:
            mass = s4 / s2
        y = (1.0 - alpha) * wy
        loss = y * hard + alpha * (mass * log_s - s3 / s2 * LN2)
        a = y + alpha * mass
        c = alpha
        if REPORT_KL:
            loss += tl.where(n3 == 0.0, 0.0, wy * n3 * divergence(s2, s3, n2, alpha, log_classes))
    if KIND == DISTILLATION:
        # n0 = hard mass, n1 = soft mass, n2 = 1 / T, n3 = 1 / T' of the student.
        mean = s3 / s2 * LN2
        if OWN:
            soft = tl.log2(s1) * LN2 - n3 * mean
        else:
            soft = log_s - mean
        y = n0 * wy
        loss = y * hard + n1 * soft
        a = y
        if OWN:
            e = n1 * n3 + zero
            c = e
        else:
            a += n1
            c = zero + n1
    if KIND == MATCHING:
        # n0 = hard mass, n1 = weight of the squares.
        y = n0 * wy
        loss = y * hard + n1 * wy * s1
        a = y
        mm = n1 * wy + zero
    loss = tl.where(loss > HUGE, float("inf"), loss)
    return loss, log_s, a, b, c, e, mm, y


@triton.jit
def divergence(s2, s3, sharpness, alpha, log_classes):
    """LABO's beta KL(P* || U), with beta = alpha / sharpness; nothing is left of it when P* is uniform."""
    away = log_classes + (sharpness * s3 / s2 - tl.log2(s2)) * LN2
    return tl.where(sharpness == 0.0, 0.0, alpha * away / tl.where(sharpness == 0.0, 1.0, sharpness))


@triton.jit
def fold(
    a, b, c, e, mm, y, factor, s0, s1, s2,
    KIND: tl.constexpr, OWN: tl.constexpr,
):  # fmt: skip
    """The coefficients of `gradient`: normalised, and multiplied by what the loss of the row is multiplied by."""
    scale = factor / s0
    a = a * scale
    b = b * scale * LN2
    c = c * factor
    if (KIND == LABO) or (KIND == DISTILLATION):
        c = c / s2
    e = e * factor
    if OWN:
        e = e / s1
    return a, b, c, e, mm * factor, y * factor


@triton.jit
def gradient(
    z, q, w, t, e, c1, c2, a_factor, b_factor, c_factor, e_factor, m_factor,
    KIND: tl.constexpr, TABLE: tl.constexpr, WEIGHT: tl.constexpr, OWN: tl.constexpr,
):  # fmt: skip
    """The gradient of every class from its `contributions`, but for Y at the label."""
    g = a_factor * e
    if KIND == MIXTURE:
        if (TABLE == UNIFORM) and WEIGHT:
            g -= c_factor * w
        elif TABLE == UNIFORM:
            g -= c_factor
        elif WEIGHT:
            g -= c_factor * (q * w)
        else:
            g -= c_factor * q
    if KIND == PENALTY:
        g += b_factor * c1
    if KIND == LABO:
        if WEIGHT:
            g -= c_factor * (c2 * w)
        else:
            g -= c_factor * c2
    if KIND == DISTILLATION:
        g -= c_factor * c2
        if OWN:
            g += e_factor * c1
    if KIND == MATCHING:
        g += m_factor * (z - t)
    return g
