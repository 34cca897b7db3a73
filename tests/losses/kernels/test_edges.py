from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("triton")

from softtargets.losses import (
    LABO,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
    use_kernels,
)
from softtargets.losses.kernels import launch

from .running import (
    agree,
    class_weights,
    exactly,
    example,
    interpreted,
    losses,
    plan,
    planned,
    run,
)

pytestmark = interpreted

NAN, INF = math.nan, math.inf
PLANS = ["tile", "held", "sweep"]
HARDEST = ["tile in chunks", "held", "sweep", "parts"]
NUMBERS = {
    "mixture": (0.9, 0.1),
    "penalty": (0.3,),
    "focal": (2.0, -1.0, 0.0),
    "labo": (1.0, -0.5, 0.8, 0.0),
    "distillation": (0.4, 0.6, 0.5, 0.5),
    "matching": (0.4, 0.6),
}
TAUGHT = ("distillation", "matching")
COMBINED = [(kind, how) for kind in NUMBERS for how in PLANS]


def call(logits, target, kind="mixture", teacher=None, weight=None):
    if kind in TAUGHT and teacher is None:
        teacher = logits.detach().flip(-1).contiguous()
    return launch.Call(logits, target, kind, NUMBERS[kind], None, weight, teacher, -100)


def by_launch(made, how, mean):
    rows, classes = made.target.numel(), made.logits.shape[1]
    gradient = torch.full_like(made.logits, 77.0)
    loss = launch.mean_or_sum(made, mean, gradient, torch.float32, plan(how, rows, classes))
    return loss, gradient


# --- rows that do not count ---


@pytest.mark.parametrize(("kind", "how"), COMBINED)
def test_where_every_row_is_ignored_the_mean_is_nan_the_sum_0_and_nothing_is_pulled(kind, how):
    logits = torch.full((2, 6), NAN)
    logits[1] = torch.randn(6)
    target = torch.full((2,), -100)
    total, gradient = by_launch(call(logits, target, kind), how, mean=False)
    assert total.item() == 0
    assert gradient.tolist() == [[0.0] * 6] * 2
    if kind in ("mixture", "matching"):
        mean, gradient = by_launch(call(logits, target, kind), how, mean=True)
        assert mean.isnan()
        assert gradient.tolist() == [[0.0] * 6] * 2
        assert launch.per_row(call(logits, target, kind), plan(how, 2, 6)).tolist() == [0.0] * 2


@pytest.mark.parametrize("how", ["chosen", *PLANS])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_an_ignored_row_of_nan_disturbs_nobody(how, reduction):
    logits, labels, _ = example(3, 10, torch.float32)
    labels[1] = -100
    clean = exactly(LabelSmoothing(reduction=reduction), logits, labels)
    logits[1] = NAN
    with planned(how):
        agree(run(LabelSmoothing(reduction=reduction), logits, labels), clean, torch.float32)


@pytest.mark.parametrize("ignore_index", [0, 3, 255])
def test_any_label_may_be_the_one_to_ignore(ignore_index):
    logits, labels, _ = example(4, 6, torch.float32)
    labels[2] = ignore_index
    for how in PLANS if ignore_index == 3 else PLANS[:1]:
        loss = LABO(ignore_index=ignore_index)
        with planned(how):
            agree(run(loss, logits, labels), exactly(loss, logits, labels), torch.float32, unit=0.25)


def test_no_rows_at_all():
    for reduction, wanted in (("mean", NAN), ("sum", 0.0)):
        logits = torch.zeros(0, 5, requires_grad=True)
        with use_kernels("always"):
            loss = LabelSmoothing(reduction=reduction)(logits, torch.zeros(0, dtype=torch.int64))
        assert loss.item() == pytest.approx(wanted, nan_ok=True)
        loss.backward()
        assert logits.grad.shape == (0, 5)


# --- labels that are no class: refused on the CPU before a kernel sees them, so kernels are asked directly ---


@pytest.mark.parametrize(("kind", "how"), COMBINED)
def test_a_label_that_is_no_class_spoils_its_own_row_only(kind, how):
    logits, labels, teacher = example(3, 6, torch.float32)
    good = call(logits, labels, kind, teacher if kind in TAUGHT else None)
    bad = good._replace(target=labels.clone())
    bad.target[1] = {"tile": 6, "held": -1, "sweep": 10**12}[how]
    wanted, found = (launch.per_row(each, plan(how, 3, 6)) for each in (good, bad))
    assert found[1].isnan()
    assert torch.equal(found[[0, 2]], wanted[[0, 2]])
    gradients = [torch.empty_like(logits) for _ in range(2)]
    for each, gradient in zip((good, bad), gradients, strict=True):
        launch.gradient_of_rows(each, torch.ones(3), gradient, plan(how, 3, 6))
    assert gradients[1][1].isnan().all()
    assert torch.equal(gradients[0][[0, 2]], gradients[1][[0, 2]])


@pytest.mark.parametrize("how", PLANS)
@pytest.mark.parametrize("wrong", [6, -1, -(10**12)])
def test_any_label_that_is_no_class_makes_the_mean_nan(how, wrong):
    logits, labels, _ = example(2, 6, torch.float32)
    labels[1] = wrong
    loss, gradient = by_launch(call(logits, labels, weight=class_weights(6)), how, mean=True)
    assert loss.isnan()
    assert gradient.isnan().all(-1).tolist() == [False, True]


@pytest.mark.parametrize("how", ["tile in chunks", "parts"])
@pytest.mark.parametrize("kind", ["mixture", "distillation"])
def test_nothing_is_written_beside_the_gradient(kind, how):
    """Rows lie in the middle of a wider buffer: whatever the labels, what is around them stays."""
    logits, labels, teacher = example(5, 11, torch.float32)
    labels[1], labels[2], labels[3] = 11, -1, -100
    guarded = torch.full((7, 15), 123.0)
    into = guarded[1:6, 2:13]
    made = call(logits, labels, kind, teacher if kind in TAUGHT else None)
    launch.mean_or_sum(made, False, into, torch.float32, plan(how, 5, 11))
    untouched = torch.ones_like(guarded, dtype=torch.bool)
    untouched[1:6, 2:13] = False
    assert (guarded[untouched] == 123).all()
    assert into[[0, 4]].isfinite().all()
    assert into[[1, 2]].isnan().all()
    assert not into[3].any()


@pytest.mark.parametrize("how", HARDEST)
@pytest.mark.parametrize("classes", [11, 24])
def test_nothing_is_read_or_written_before_or_after_dense_rows(how, classes):
    """Around the logits lies NaN, which would spoil every sum."""
    logits, labels, _ = example(3, classes, torch.float32)
    labels[0] = classes
    around = torch.full((7 * classes,), NAN)
    around[2 * classes : 5 * classes] = logits.flatten()
    guarded = torch.full((7 * classes,), 123.0)
    made = call(around[2 * classes : 5 * classes].view(3, classes), labels, "labo")
    into = guarded[2 * classes : 5 * classes].view(3, classes)
    launch.gradient_of_rows(made, torch.ones(3), into, plan(how, 3, classes))
    assert (guarded[: 2 * classes] == 123).all()
    assert (guarded[5 * classes :] == 123).all()
    assert into.isnan().all(-1).tolist() == [True, False, False]
    assert into[1:].isfinite().all()


# --- logits at the edge of what can be stored ---


def extremes(case, dtype=torch.float32):
    logits, labels, teacher = example(3, 24, dtype, seed=3)
    if case == "impossible classes":
        logits[0, 5:] = -INF
        logits[1, ::2] = -INF
        labels[:2] = torch.tensor([2, 3])
    elif case == "a first part that is impossible":
        logits[:, :16] = -INF
        labels[:] = 20
    elif case == "a last part that is impossible":
        logits[:, 3:] = -INF
        labels[:] = 1
    elif case == "an impossible label":
        logits[1, labels[1]] = -INF
    elif case == "ten thousand":
        logits *= 1e4 / 3
    elif case == "far apart":
        logits[0, 3], logits[1, 4], logits[2, 20] = 1e4, -1e4, 1e4
    elif case == "late and huge":
        logits[:, 23] = 500.0
        logits[2] -= 300
    elif case == "late and huge at the label":
        logits[:, 22] = 3e4
        labels[:] = 22
    elif case == "all the same":
        logits[:] = 12345.0
    elif case == "the largest half":
        logits[0, 3], logits[0, 20], logits[1, 2], logits[2] = 65504, -65504, -65504, 65504
    return logits.to(dtype), labels, teacher


CASES = [
    "impossible classes",
    "a first part that is impossible",
    "a last part that is impossible",
    "an impossible label",
    "ten thousand",
    "far apart",
    "late and huge",
    "late and huge at the label",
    "all the same",
]
CHOSEN = [
    "cross entropy",
    "focal",
    "anti-focal, not detached",
    "confidence penalty",
    "label smoothing",
    "label smoothing, matrix",
    "labo",
    "labo, warming up",
    "distillation, own temperature",
    "distillation of logits",
]


@pytest.mark.parametrize("how", HARDEST)
@pytest.mark.parametrize("case", CASES)
def test_extreme_logits_as_in_plain_pytorch(case, how):
    """The losses take turns, so that each meets every plan."""
    place = HARDEST.index(how) + 3 * CASES.index(case)
    compare(CHOSEN[place % len(CHOSEN)], case, how, torch.float32)


def compare(name, case, how, dtype):
    logits, labels, teacher = extremes(case, dtype)
    if name == "distillation of logits" and "impossible" in case:
        return  # the square of an infinite difference
    loss = losses(24, reduction="none")[name]
    value, gradient = exactly(loss, logits, labels, teacher)
    with planned(how):
        found, found_gradient = run(loss, logits, labels, teacher)
    size = logits[logits.isfinite()].abs().amax().item()
    torch.testing.assert_close(found.double(), value, rtol=1e-5 + eps(dtype), atol=2e-6 * max(1, size))
    sound = value.isfinite() & ~gradient.isnan().any(-1)  # what else would a finite loss pull?
    torch.testing.assert_close(
        found_gradient[sound].double(), gradient[sound], rtol=1e-4 + eps(dtype), atol=1e-5 + 1e-6 * size / 1e3
    )


def eps(dtype):
    return 0 if dtype == torch.float32 else torch.finfo(dtype).eps


@pytest.mark.parametrize("name", CHOSEN)
def test_extreme_halves_as_in_plain_pytorch(name):
    for how in ["tile"] if CHOSEN.index(name) % 2 else ["parts"]:
        logits, labels, teacher = extremes("the largest half", torch.float16)
        loss = losses(24, reduction="none")[name]
        value, gradient = exactly(loss, logits, labels, teacher)
        with planned(how):
            found, found_gradient = run(loss, logits, labels, teacher)
        # What is too large for a half is infinite there, too.
        torch.testing.assert_close(found, value.half(), rtol=2e-3, atol=1e-3)
        fits = gradient.abs() < 65504
        torch.testing.assert_close(
            found_gradient.double()[fits], gradient[fits], rtol=2e-3, atol=2e-3, equal_nan=True
        )


@pytest.mark.parametrize(("kind", "how"), COMBINED)
def test_nan_among_the_logits_makes_the_loss_of_its_row_nan(kind, how):
    """At the beginning, in the middle and at the end of a row."""
    logits, labels, teacher = example(4, 20, torch.float32)
    logits[1, 0] = logits[2, 9] = logits[3, 19] = NAN
    labels[:] = 7
    found = launch.per_row(call(logits, labels, kind, teacher if kind in TAUGHT else None), plan(how, 4, 20))
    assert found.isnan().tolist() == [False, True, True, True]


@pytest.mark.parametrize("how", PLANS)
def test_a_class_that_the_prior_excludes_may_be_impossible(how):
    prior = torch.tensor([0.0, 0.5, 0.5, 0.0, 0.0, 0.0])
    logits = torch.tensor([[-INF, 1.0, 2.0, -INF, 0.5, -INF]] * 2)
    loss = LabelSmoothing(0.2, prior=prior)
    labels = torch.tensor([1, 4])
    with planned(how):
        agree(run(loss, logits, labels), exactly(loss, logits, labels), torch.float32)


@pytest.mark.parametrize("how", PLANS)
def test_a_row_without_any_possible_class_is_nan(how):
    logits = torch.full((2, 6), -INF)
    logits[1] = 0.0
    with planned(how):
        found = CrossEntropy(reduction="none")(logits, torch.tensor([1, 1]))
    assert found[1].item() == pytest.approx(math.log(6))
    assert found[0].isnan()


def test_one_class_teaches_nothing():
    logits, labels = torch.randn(3, 1), torch.zeros(3, dtype=torch.int64)
    for name, loss in losses(1).items():
        if name == "distillation of logits":
            continue
        with planned("chosen"):
            value, gradient = run(loss, logits, labels, logits)
        assert value.item() == pytest.approx(0, abs=1e-6), name
        assert gradient.abs().max() < 1e-6, name


# --- shapes and layouts ---


@pytest.mark.parametrize("rows", [1, 2, 130])
def test_any_number_of_rows(rows):
    for name in ("label smoothing", "labo"):
        logits, labels, _ = example(rows, 3, torch.float32, ignored=True)
        labels[0] = 1
        loss = losses(3, weight=class_weights(3))[name]
        with planned("chosen"):
            agree(run(loss, logits, labels), exactly(loss, logits, labels), torch.float32, unit=1 / rows)


def test_more_rows_than_one_program_counts():
    target = torch.randint(5, (70_000,), generator=torch.Generator().manual_seed(0))
    target[::7] = -100
    weight = class_weights(5)
    assert launch.label_weights(target, None, 5, -100).sum().item() == 60_000
    wanted = weight[target[target != -100]].double().sum().item()
    assert launch.label_weights(target, weight, 5, -100).double().sum().item() == pytest.approx(
        wanted, rel=1e-5
    )


def laid_out(layout):
    """Logits that are no dense rows, with target."""
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(4, 40, generator=generator)
    deep = torch.randn(2, 5, 3, generator=generator)
    image = torch.randn(2, 5, 2, 3, generator=generator)
    labels = torch.randint(5, (2, 2, 3), generator=generator)
    return {
        "slice of wider rows": (wide[:, 3:20], labels.reshape(-1)[:4]),
        "every second row": (torch.randn(8, 10, generator=generator)[::2], labels.reshape(-1)[:4]),
        "every second class": (wide[:, ::2], labels.reshape(-1)[:4]),
        "transposed": (torch.randn(10, 4, generator=generator).t(), labels.reshape(-1)[:4]),
        "one row": (torch.randn(10, generator=generator), torch.tensor(3)),
        "one example repeated": (wide[:1, :7].expand(4, 7), labels.reshape(-1)[:4]),
        "(N, C, d)": (deep, labels[:, 0]),
        "(N, C, d), classes last": (deep.transpose(1, 2).contiguous().transpose(1, 2), labels[:, 0]),
        "(N, C, d), a slice": (torch.randn(2, 5, 6, generator=generator)[:, :, ::2], labels[:, 0]),
        "(N, C, d1, d2)": (image, labels),
        "(N, C, d1, d2), channels last": (image.contiguous(memory_format=torch.channels_last), labels),
        "(N, C, d1, d2), rows that no strides describe": (
            torch.randn(2, 5, 2, 4, generator=generator)[..., :3],
            labels,
        ),
        "(N, C, d1, d2, d3)": (
            torch.randn(2, 5, 2, 3, 2, generator=generator),
            labels.unsqueeze(-1).expand(2, 2, 3, 2),
        ),
        "target repeated": (wide[:, :10].contiguous(), torch.tensor([3]).expand(4)),
        "every second target": (wide[:, :10].contiguous(), labels.reshape(-1)[:8:2]),
        "narrow integers": (wide[:, :10].contiguous(), labels.reshape(-1)[:4].to(torch.int32)),
        "bytes": (wide[:, :10].contiguous(), labels.reshape(-1)[:4].to(torch.uint8)),
    }[layout]


LAYOUTS = [
    "slice of wider rows", "every second row", "every second class", "transposed", "one row",
    "one example repeated", "(N, C, d)", "(N, C, d), classes last", "(N, C, d), a slice", "(N, C, d1, d2)",
    "(N, C, d1, d2), channels last", "(N, C, d1, d2), rows that no strides describe", "(N, C, d1, d2, d3)",
    "target repeated", "every second target", "narrow integers", "bytes",
]  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "how"),
    [(each, "tile in chunks") for each in LAYOUTS] + [(each, "parts") for each in LAYOUTS[1::4]],
)
def test_logits_and_targets_of_any_shape_and_layout(layout, how):
    logits, target = laid_out(layout)
    place = LAYOUTS.index(layout)
    reduction = ["mean", "sum", "none"][(place + (how == "tile")) % 3]
    made = [LabelSmoothing, LABO, FocalLoss, ConfidencePenalty][place % 4](reduction=reduction)
    exact = exactly(made, logits, target)
    with planned(how) as launches:
        found = run(made, logits, target)
    assert launches
    agree(found, exact, torch.float32)


@pytest.mark.parametrize(
    ("layout", "how"),
    [("transposed", "sweep"), ("(N, C, d)", "tile"), ("(N, C, d1, d2), channels last", "tile")],
)
def test_the_teacher_may_be_laid_out_differently(layout, how):
    logits, target = laid_out(layout)
    teacher = torch.randn(logits.shape, generator=torch.Generator().manual_seed(5))
    loss = Distillation(2.0, 0.5, student_temperature=True, reduction="sum")
    with planned(how) as launches:
        agree(run(loss, logits, target, teacher), exactly(loss, logits, target, teacher), torch.float32)
        agree(run(loss, teacher, target, logits), exactly(loss, teacher, target, logits), torch.float32)
    assert len(launches) == 2


def test_the_teacher_may_have_another_precision():
    logits, labels, teacher = example(2, 12, torch.float32)
    loss = Distillation(2.0, 0.5, reduction="sum")
    for how in ("tile", "sweep"):
        with planned(how):
            found = run(loss, logits, labels, teacher.bfloat16())
        agree(found, exactly(loss, logits, labels, teacher.bfloat16()), torch.float32)


@pytest.mark.parametrize("how", PLANS)
def test_tables_and_weights_in_any_precision(how):
    logits, labels, _ = example(3, 8, torch.float32)
    table = torch.softmax(torch.randn(8, 8, generator=torch.Generator().manual_seed(1)), -1)
    loss = LabelSmoothing(0.3, matrix=table.double(), weight=class_weights(8).double(), reduction="sum")
    with planned(how):
        agree(run(loss, logits, labels), exactly(loss, logits, labels), torch.float32)
    # Rows of the table are found also when the table is not stored row by row.
    loss = LabelSmoothing(0.3, matrix=table.t().contiguous().t(), reduction="sum")
    with planned(how):
        agree(run(loss, logits, labels), exactly(loss, logits, labels), torch.float32)
