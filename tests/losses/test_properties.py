"""What holds for every loss, whatever the numbers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from softtargets.losses import (
    LABO,
    AntiFocalLoss,
    ConfidencePenalty,
    Distillation,
    FocalLoss,
    LabelSmoothing,
)

from .making import NAMES, distribution, matrix, value_and_gradient

PROPERTY = settings(max_examples=60, deadline=None)


@st.composite
def problems(draw, kinds=("indices", "probabilities")):
    """Logits, target, teacher and the options of a call, with some rows ignored and perhaps weights."""
    size, k = draw(st.integers(1, 7)), draw(st.integers(2, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    logits = normal(size, k) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    teacher = normal(size, k) * 3
    options = {}
    if draw(st.booleans()):
        options["weight"] = torch.rand(k, generator=generator, dtype=torch.float64) + 0.1
    if draw(st.sampled_from(kinds)) == "probabilities":
        target = torch.softmax(2 * normal(size, k), -1)
    else:
        target = torch.randint(k, (size,), generator=generator)
        ignored = torch.rand(size, generator=generator) < draw(st.sampled_from([0.0, 0.3]))
        target = target.where(~ignored, -100)
    return logits, target, teacher, options


UNIT, POSITIVE = st.floats(0, 1), st.floats(0.1, 10)


@st.composite
def losses(draw):
    """A function that makes a loss from options, with tables whose classes are in a given order."""
    name = draw(st.sampled_from([name for name in NAMES if "," not in name] + ["label smoothing"] * 3))
    a, b, t = draw(UNIT), draw(UNIT), draw(POSITIVE)
    flag, other, source = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from("upm"))

    def make(classes, order=None, **options):
        order = list(range(classes)) if order is None else order
        if "weight" in options:
            options["weight"] = options["weight"][order]
        if name == "label smoothing":
            tables = {"prior": distribution(classes)[order]} if source == "p" else {}
            tables = {"matrix": matrix(classes)[order][:, order]} if source == "m" else tables
            return LabelSmoothing(a, "others" if flag else "all", **tables, **options)
        if name == "confidence penalty":
            return ConfidencePenalty(t / 5, **options)
        if name == "focal":
            return FocalLoss(t / 3, flag, **options)
        if name == "anti-focal":
            return AntiFocalLoss(t / 3, a, flag, **options)
        if name == "distillation":
            return Distillation(t, a, flag, other, **options)
        if name == "distillation of logits":
            return Distillation(t, a, match="logits", **options)
        if name == "labo":
            reading = "reversed" if flag else "literal"
            return LABO(t, a, b if other else None, reading=reading, include_kl=flag, **options)
        return LabelSmoothing(0.0, **options)

    make.name = name
    return make


def close(found, expected, rtol=1e-9, atol=1e-10):
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True)


@PROPERTY
@given(problem=problems(), flag=st.booleans(), number=POSITIVE)
def test_moving_no_mass_is_cross_entropy(problem, flag, number):
    logits, target, teacher, options = problem
    k = logits.shape[1]
    expected = value_and_gradient(lambda z: F.cross_entropy(z, target, options.get("weight")), logits)
    spread = "others" if flag else "all"
    for loss in (
        LabelSmoothing(0.0, spread, **options),
        LabelSmoothing(0.0, spread, prior=distribution(k), **options),
        LabelSmoothing(0.0, spread, matrix=matrix(k), **options),
        ConfidencePenalty(0.0, **options),
        FocalLoss(0.0, flag, **options),
        AntiFocalLoss(0.0, number, flag, **options),
        AntiFocalLoss(number, 0.0, flag, **options),
        Distillation(number, 0.0, flag, **options),
        Distillation(number, 0.0, match="logits", **options),
        LABO(number, alpha=0.0, **options),
        LABO(number, rho=0.0, reading="reversed", include_kl=flag, **options),
    ):
        for found, theirs in zip(value_and_gradient(loss, logits, target, teacher), expected, strict=True):
            close(found, theirs)


@PROPERTY
@given(problem=problems(), make=losses(), shift=st.floats(-50, 50))
def test_what_is_added_to_all_logits_of_a_row_does_not_matter(problem, make, shift):
    logits, target, teacher, options = problem
    loss = make(logits.shape[1], **options)
    rows = torch.linspace(0.5, 1, len(logits), dtype=torch.float64).unsqueeze(1) * shift
    expected, slope = value_and_gradient(loss, logits, target, teacher)
    if make.name == "distillation of logits":  # but both may be shifted alike
        found, gradient = value_and_gradient(loss, logits + rows, target, teacher + rows)
    else:
        found, gradient = value_and_gradient(loss, logits + rows, target, teacher - 2 * rows)
    close(found, expected)
    close(gradient, slope)


@PROPERTY
@given(problem=problems(), make=losses(), data=st.data())
def test_the_order_of_the_classes_does_not_matter(problem, make, data):
    logits, target, teacher, options = problem
    k = logits.shape[1]
    order = data.draw(st.permutations(range(k)))
    expected, slope = value_and_gradient(make(k, **options), logits, target, teacher)
    if target.is_floating_point():
        moved = target[:, order]
    else:
        place = torch.tensor(order).argsort()
        moved = torch.where(target < 0, target, place[target.clamp_min(0)])
    loss = make(k, order=order, **options)
    found, gradient = value_and_gradient(loss, logits[:, order], moved, teacher[:, order])
    close(found, expected)
    close(gradient, slope[:, order])


@PROPERTY
@given(problem=problems(), make=losses(), data=st.data())
def test_the_order_of_the_examples_is_that_of_their_losses(problem, make, data):
    logits, target, teacher, options = problem
    order = data.draw(st.permutations(range(len(logits))))
    none = make(logits.shape[1], reduction="none", **options)
    close(none(logits[order], target[order], teacher[order]), none(logits, target, teacher)[order])
    mean = make(logits.shape[1], **options)
    close(mean(logits[order], target[order], teacher[order]), mean(logits, target, teacher))


@PROPERTY
@given(problem=problems(), make=losses())
def test_the_mean_is_the_sum_over_the_weight_of_what_counts(problem, make):
    logits, target, teacher, options = problem
    k = logits.shape[1]
    mean, total, none = (
        make(k, reduction=reduction, **options)(logits, target, teacher)
        for reduction in ("mean", "sum", "none")
    )
    close(none.sum(), total)
    if target.is_floating_point():
        weight = float(len(target))
    else:
        kept = target[target != -100]
        weight = options["weight"][kept].sum().item() if "weight" in options else float(len(kept))
        assert (none[target == -100] == 0).all()
    if weight:
        close(mean, total / weight)
    else:
        assert torch.isnan(mean)


@PROPERTY
@given(problem=problems(), make=losses(), data=st.data())
def test_a_batch_is_the_sum_of_its_parts(problem, make, data):
    logits, target, teacher, options = problem
    cut = data.draw(st.integers(0, len(logits)))
    loss = make(logits.shape[1], reduction="sum", **options)
    parts = [loss(logits[part], target[part], teacher[part]) for part in (slice(cut), slice(cut, None))]
    close(sum(parts), loss(logits, target, teacher))
    # What is ignored might as well not be there.
    if not target.is_floating_point():
        kept = target != -100
        mean = make(logits.shape[1], **options)
        close(mean(logits[kept], target[kept], teacher[kept]), mean(logits, target, teacher))


@PROPERTY
@given(problem=problems(kinds=("indices",)), make=losses())
def test_certain_probabilities_are_labels(problem, make):
    logits, target, teacher, options = problem
    kept = target != -100
    logits, target, teacher = logits[kept], target[kept], teacher[kept]
    loss = make(logits.shape[1], reduction="sum", **options)
    certain = F.one_hot(target, logits.shape[1]).double()
    for found, expected in zip(
        value_and_gradient(loss, logits, certain, teacher),
        value_and_gradient(loss, logits, target, teacher),
        strict=True,
    ):
        close(found, expected)


@PROPERTY
@given(problem=problems(), make=losses())
def test_weights_of_one_change_nothing_and_a_common_factor_cancels(problem, make):
    logits, target, teacher, _ = problem
    k = logits.shape[1]
    plain = make(k)(logits, target, teacher)
    close(make(k, weight=torch.ones(k, dtype=torch.float64))(logits, target, teacher), plain)
    scaled = make(k, weight=torch.full((k,), 3.0))(logits, target, teacher)
    close(scaled, 3 * plain if target.is_floating_point() else plain)


@PROPERTY
@given(problem=problems(), make=losses())
def test_the_gradient_of_a_row_sums_to_zero(problem, make):
    logits, target, teacher, options = problem
    if make.name == "distillation of logits":
        logits, teacher = (z - z.mean(-1, keepdim=True) for z in (logits, teacher))
    _, slope = value_and_gradient(make(logits.shape[1], reduction="sum", **options), logits, target, teacher)
    assert slope.sum(-1).abs().max().item() == pytest.approx(0, abs=1e-9)


@PROPERTY
@given(problem=problems(), make=losses())
def test_single_precision_is_close_to_double(problem, make):
    logits, target, teacher, options = problem
    loss = make(logits.shape[1], reduction="none", **options)
    single = target.float() if target.is_floating_point() else target
    found = loss(logits.float(), single, teacher.float())
    assert found.dtype == torch.float32
    close(found.double(), loss(logits, target, teacher), rtol=1e-3, atol=1e-3)
