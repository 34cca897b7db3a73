from __future__ import annotations

import copy
import io
import math
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from softtargets.exceptions import SofttargetsError, TargetError
from softtargets.losses import (
    LABO,
    AntiFocalLoss,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    KnowledgeRefinery,
    LabelSmoothing,
    LinearLoss,
    OnlineLabelSmoothing,
    SoftTargetLoss,
    TopLogits,
    top_logits,
    use_kernels,
)

from .making import (
    NAMES,
    batch,
    cross_entropy,
    distribution,
    every_loss,
    log_softmax,
    matrix,
    one_hot,
    rows,
    shaped,
    smoothed_target,
    value_and_gradient,
    weighted_cross_entropy,
)

SHAPES = [(), (5,), (3, 2), (2, 3, 2)]
NAN, INF = math.nan, math.inf


def close(found, expected, **tolerance):
    torch.testing.assert_close(found, expected, equal_nan=True, **tolerance)


def torchs(alpha=0.0, **options):
    return lambda logits, target: F.cross_entropy(logits, target, label_smoothing=alpha, **options)


def same_as_torch(loss, theirs, logits, target, **tolerance):
    for found, expected in zip(
        value_and_gradient(loss, logits, target), value_and_gradient(theirs, logits, target), strict=True
    ):
        close(found, expected, **tolerance)


# --- the semantics of torch.nn.functional.cross_entropy ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_shape_reduction_and_kind_of_target_as_in_torch(shape, reduction, kind, weighted):
    logits, labels, probabilities = shaped(shape, 4)
    target = labels if kind == "indices" else probabilities
    weight = torch.tensor([0.5, 2.0, 0.0, 1.25], dtype=torch.float64) if weighted else None
    options = {"weight": weight, "reduction": reduction}
    same_as_torch(CrossEntropy(**options), torchs(**options), logits, target)
    for alpha in (0.0, 0.25, 0.9995, 1.0):
        same_as_torch(LabelSmoothing(alpha, **options), torchs(alpha, **options), logits, target)


@pytest.mark.parametrize("shape", [(6,), (4, 3)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("ignore_index", [-100, -1, 1, 2, 77])
@pytest.mark.parametrize("weighted", [False, True])
def test_ignored_rows_as_in_torch(shape, reduction, ignore_index, weighted):
    logits, labels, _ = shaped(shape, 4, seed=2)
    labels.view(-1)[::3] = ignore_index
    weight = torch.tensor([0.5, 2.0, 3.0, 1.25], dtype=torch.float64) if weighted else None
    options = {"weight": weight, "reduction": reduction, "ignore_index": ignore_index}
    same_as_torch(CrossEntropy(**options), torchs(**options), logits, labels)
    same_as_torch(LabelSmoothing(0.3, **options), torchs(0.3, **options), logits, labels)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_values_against_loops(shape, weighted):
    logits, labels, probabilities = shaped(shape, 3, seed=4)
    weight = [0.5, 2.0, 1.25] if weighted else None
    tensor = torch.tensor(weight, dtype=torch.float64) if weighted else None
    for target in (labels, probabilities):
        targets = (
            rows(target) if target is probabilities else [one_hot(y, 3) for y in labels.reshape(-1).tolist()]
        )
        losses = [
            weighted_cross_entropy([0.8 * t + 0.2 / 3 for t in q], row, weight)
            for q, row in zip(targets, rows(logits), strict=True)
        ]
        found = LabelSmoothing(0.2, weight=tensor, reduction="none")(logits, target)
        assert found.shape == shape
        assert found.reshape(-1).tolist() == pytest.approx(losses, rel=1e-12)
        total = len(losses)
        if target is labels and weight:
            total = sum(weight[y] for y in labels.reshape(-1).tolist())
        found = LabelSmoothing(0.2, weight=tensor)(logits, target).item()
        assert found == pytest.approx(sum(losses) / total, rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_all_options_at_once_as_in_torch(data):
    draw = data.draw
    shape = draw(st.sampled_from([(), (1,), (4,), (0,), (2, 3), (3, 0), (2, 1, 3)]))
    classes = draw(st.integers(1, 5))
    logits, labels, probabilities = shaped(shape, classes, seed=draw(st.integers(0, 99)))
    logits = logits * draw(st.sampled_from([0.0, 1.0, 50.0]))
    options = {"reduction": draw(st.sampled_from(["mean", "sum", "none"]))}
    if draw(st.booleans()):
        values = draw(st.lists(st.floats(0.01, 4), min_size=classes, max_size=classes))
        options["weight"] = torch.tensor(values, dtype=torch.float64)
    if draw(st.booleans()):
        target = probabilities
    else:
        options["ignore_index"] = draw(st.sampled_from([-100, -1, 0, 1, 3]))
        chance = torch.Generator().manual_seed(draw(st.integers(0, 99)))
        kept = torch.rand(shape, generator=chance) > draw(st.sampled_from([0.0, 0.5, 1.0]))
        target = labels.where(kept, options["ignore_index"])
    alpha = draw(st.sampled_from([0.0, 1.0, 0.1]) | st.floats(0, 1))
    same_as_torch(LabelSmoothing(alpha, **options), torchs(alpha, **options), logits, target)
    same_as_torch(CrossEntropy(**options), torchs(**options), logits, target)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_half_precision_is_computed_in_single(dtype, kind, reduction):
    logits, labels, probabilities = shaped((64,), 50, dtype)
    target = labels if kind == "indices" else probabilities
    found, gradient = value_and_gradient(LabelSmoothing(0.1, reduction=reduction), logits, target)
    assert found.dtype == gradient.dtype == dtype
    wide = target if kind == "indices" else target.float()
    expected, slope = value_and_gradient(torchs(0.1, reduction=reduction), logits.float(), wide)
    close(found.float(), expected.to(dtype).float(), rtol=1e-6, atol=0)
    close(gradient.float(), slope.to(dtype).float(), rtol=8e-3 if dtype != torch.float32 else 1e-4, atol=1e-6)


def test_half_precision_loses_nothing_to_the_sum_over_many_classes():
    logits, labels = batch(2, 20_000, torch.float16, scale=0.1)
    expected = [-log_softmax(row)[y] for row, y in zip(rows(logits), labels.tolist(), strict=True)]
    found = CrossEntropy(reduction="none")(logits, labels)
    assert found.dtype == torch.float16
    assert found.tolist() == pytest.approx(expected, rel=6e-4)  # one rounding to half precision


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_of_any_width_are_class_indices(dtype):
    logits, labels = batch(8, 5)
    weight = torch.rand(5, dtype=torch.float64)
    for loss in every_loss(5, weight=weight, reduction="none").values():
        close(loss(logits, labels.to(dtype), logits), loss(logits, labels, logits))
    ignoring = CrossEntropy(ignore_index=2)
    close(ignoring(logits, labels.to(dtype)), F.cross_entropy(logits, labels, ignore_index=2))


@pytest.mark.parametrize(("dtype", "classes"), [(torch.uint8, 300), (torch.uint8, 257), (torch.int8, 256)])
def test_more_classes_than_the_integers_can_count(dtype, classes):
    logits, labels = batch(40, classes)
    labels %= 100
    close(CrossEntropy()(logits, labels.to(dtype)), F.cross_entropy(logits, labels))


def test_a_byte_is_not_taken_for_the_ignored_index_modulo_256():
    logits, _ = batch(2, 200)
    labels = torch.tensor([156, 3], dtype=torch.uint8)  # 156 = 256 - 100
    expected = F.cross_entropy(logits, labels.long(), reduction="none")
    close(CrossEntropy(reduction="none")(logits, labels), expected)


# --- the edges ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_an_empty_batch_has_the_mean_nan_and_the_sum_zero(name, shape, kind):
    logits, labels, probabilities = shaped(shape, 4)
    target = labels if kind == "indices" else probabilities
    for reduction, expected in (("mean", NAN), ("sum", 0.0)):
        loss = every_loss(4, reduction=reduction)[name]
        value, gradient = value_and_gradient(loss, logits, target, logits)
        assert value.item() == pytest.approx(expected, nan_ok=True)
        assert gradient.shape == logits.shape
    assert every_loss(4, reduction="none")[name](logits, target, logits).shape == shape


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weight", [None, torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)])
def test_a_batch_where_all_rows_are_ignored(name, weight):
    logits, labels = batch(3, 3)
    labels.fill_(-100)
    for reduction, expected in (("mean", NAN), ("sum", 0.0)):
        loss = every_loss(3, reduction=reduction, weight=weight)[name]
        value, gradient = value_and_gradient(loss, logits, labels, logits + 1)
        assert value.item() == pytest.approx(expected, nan_ok=True)
        assert gradient.tolist() == [[0.0] * 3] * 3
    none = every_loss(3, reduction="none", weight=weight)[name]
    assert none(logits, labels, logits + 1).tolist() == [0.0] * 3


@pytest.mark.parametrize("name", NAMES)
def test_what_stands_in_an_ignored_row_does_not_matter(name):
    logits, labels = batch(5, 4)
    labels[2] = -100
    teacher, _ = batch(5, 4, seed=1)
    loss = every_loss(4, weight=torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64))[name]
    expected, slope = value_and_gradient(loss, logits, labels, teacher)
    assert slope[2].tolist() == [0.0] * 4
    for junk in (1e4, -INF, NAN):
        changed = logits.clone()
        changed[2, 1] = junk
        value, gradient = value_and_gradient(loss, changed, labels, teacher)
        close(value, expected)
        close(gradient[[0, 1, 3, 4]], slope[[0, 1, 3, 4]])


@pytest.mark.parametrize("name", [name for name in NAMES if "others" not in name])
def test_one_class_only(name):
    logits, labels, probabilities = shaped((4,), 1)
    for target in (labels, torch.ones_like(probabilities)):
        loss = every_loss(1)[name]
        value, gradient = value_and_gradient(loss, logits, target, logits)
        assert abs(value.item()) < 1e-15
        assert gradient.abs().max().item() < 1e-15


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_huge_logits_stay_finite(name, dtype):
    size = 65504 if dtype == torch.float16 else 1e4
    # The right class by far; the label among the unlikely; a draw; everything alike.
    logits = torch.tensor([[1, -1, 0], [-1, 1, -1], [1, 1, -1], [-1, -1, -1]], dtype=dtype) * size
    labels = torch.tensor([0, 0, 1, 2])
    teacher = -logits if "logits" not in name else logits / 2
    loss = every_loss(3, reduction="none")[name]
    for target in (labels, F.one_hot(labels, 3).to(dtype)):
        _, gradient = value_and_gradient(loss, logits, target, teacher)
        wide = loss(logits.double(), target, teacher.double())
        assert torch.isfinite(wide).all()
        if "logits" not in name or dtype != torch.float16:  # the squares of these are beyond half precision
            assert torch.isfinite(gradient).all()
        if dtype != torch.float16:
            close(loss(logits, target, teacher).double(), wide, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_the_extremes_of_half_precision(dtype):
    logits = torch.tensor([[65504.0, -65504.0], [-65504.0, 65504.0]], dtype=dtype)
    labels = torch.tensor([0, 0])
    value, gradient = value_and_gradient(CrossEntropy(reduction="none"), logits, labels)
    assert value.tolist() == [0.0, INF if dtype == torch.float16 else 131008.0]  # as much as half can hold
    assert gradient.tolist() == [[0.0, 0.0], [-1.0, 1.0]]


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropy(),
        LabelSmoothing(0.0),
        LabelSmoothing(0.3, prior=torch.tensor([0.5, 0.5, 0.0])),
        LabelSmoothing(0.3, "others", prior=torch.tensor([0.25, 0.75, 0.0])),
        LabelSmoothing(0.3, matrix=torch.tensor([[0.7, 0.3, 0.0], [0.5, 0.5, 0.0], [0.1, 0.1, 0.8]])),
        ConfidencePenalty(0.2),
        FocalLoss(),
        FocalLoss(torch.tensor(0.5)),
        AntiFocalLoss(),
        LABO(),
        LABO(alpha=0.3, include_kl=True),
        LABO(reading="reversed", include_kl=True),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_a_class_that_the_target_excludes_may_be_impossible(loss, kind):
    """As if that class did not exist - or, where the number of classes counts, as if it were very unlikely."""
    logits = torch.tensor([[0.5, -1.0, -INF], [2.0, 1.0, -INF]], dtype=torch.float64)
    target = torch.tensor([0, 1])
    if kind == "probabilities":
        target = torch.tensor([[0.25, 0.75, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)
    value, gradient = value_and_gradient(loss, logits, target)
    almost, slope = value_and_gradient(loss, logits.clamp_min(-1e4), target)
    assert torch.isfinite(value)
    close(value, almost, rtol=1e-12, atol=0)
    close(gradient, slope, rtol=1e-12, atol=1e-15)


def test_an_impossible_class_that_the_target_asks_for_costs_everything():
    logits = torch.tensor([[0.5, -1.0, -INF]])
    assert CrossEntropy()(logits, torch.tensor([2])).item() == INF
    assert LabelSmoothing(0.1)(logits, torch.tensor([0])).item() == INF
    assert F.cross_entropy(logits, torch.tensor([0]), label_smoothing=0.1).item() == INF


def test_no_smoothing_given_as_a_tensor_may_have_impossible_classes():
    logits, labels = torch.tensor([[0.0, 1.0, -INF]]), torch.tensor([0])
    expected, slope = value_and_gradient(F.cross_entropy, logits, labels)
    value, gradient = value_and_gradient(LabelSmoothing(torch.tensor(0.0)), logits, labels)
    close(value, expected)
    close(gradient, slope)
    pack = LabelSmoothing(torch.tensor([0.0, 0.0]))
    value, gradient = value_and_gradient(pack, logits.expand(2, 1, 3), labels.expand(2, 1))
    close(value, expected.expand(2))
    close(gradient, slope.expand(2, 1, 3))


def test_with_all_mass_moved_the_label_may_be_impossible():
    logits, labels = torch.tensor([[0.0, 1.0, -INF]]), torch.tensor([2])
    prior = torch.tensor([0.25, 0.75, 0.0])
    expected, slope = value_and_gradient(F.cross_entropy, logits[:, :2], prior[None, :2])
    for alpha in (1.0, torch.tensor(1.0)):
        value, gradient = value_and_gradient(LabelSmoothing(alpha, prior=prior), logits, labels)
        close(value, expected)
        close(gradient[:, :2], slope)
        assert LabelSmoothing(0.9, prior=prior)(logits, labels).item() == INF


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [NAN, INF])
def test_what_is_not_a_number_makes_its_row_nan_and_no_other(name, bad):
    logits, labels = batch(4, 3)
    teacher, _ = batch(4, 3, seed=1)
    loss = every_loss(3, reduction="none")[name]
    fine = loss(logits, labels, teacher)
    logits[1, (labels[1] + 1) % 3] = bad
    found = loss(logits, labels, teacher)
    assert not torch.isfinite(found[1])
    if "logits" not in name:
        assert torch.isnan(found[1])
    close(found[[0, 2, 3]], fine[[0, 2, 3]])


# --- refusals ---


@pytest.mark.parametrize(
    ("label", "ignore_index"), [(5, -100), (-1, -100), (-100, -1), (2**40, -100), (4, 7)]
)
@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_a_label_out_of_range_is_refused_and_named(label, ignore_index, shape):
    logits, labels, _ = shaped(shape, 4)
    labels.view(-1)[4] = label
    for loss in (CrossEntropy(ignore_index=ignore_index), LabelSmoothing(ignore_index=ignore_index)):
        with pytest.raises(TargetError) as found:
            loss(logits, labels)
        assert isinstance(found.value, ValueError)
        assert isinstance(found.value, IndexError)
        assert isinstance(found.value, SofttargetsError)
        message = str(found.value)
        assert f"label {label} at position 4" in message
        assert "0 to 3" in message
        assert f"{ignore_index} to ignore" in message


def test_a_single_label_out_of_range_is_refused():
    with pytest.raises(TargetError, match="label 3 at position 0"):
        CrossEntropy()(torch.zeros(3), torch.tensor(3))


@pytest.mark.parametrize(
    ("logits", "target", "error", "message"),
    [
        ([[1.0]], torch.zeros(1, dtype=torch.long), TypeError, "logits must be a tensor, not list"),
        (torch.zeros(1, 2), [0], TypeError, "target must be a tensor, not list"),
        (torch.zeros(1, 2), None, TypeError, "target must be a tensor, not NoneType"),
        (torch.zeros(1, 2).long(), torch.tensor([0]), TypeError, "logits must be floating-point.*int64"),
        (torch.zeros(()), torch.tensor(0), ValueError, "logits must have a dimension for the classes"),
        (torch.zeros(3, 2), torch.zeros(3).bool(), TypeError, "target must be class indices.*not torch.bool"),
        (torch.zeros(3, 2), torch.zeros(3) + 0j, TypeError, "target must be class indices.*complex"),
        (
            torch.zeros(3, 2),
            torch.zeros(2).long(),
            ValueError,
            r"shape \(3,\) for logits of shape \(3, 2\), not \(2,\)",
        ),
        (torch.zeros(3, 2), torch.zeros(3, 2).long(), ValueError, r"shape \(3,\) .* not \(3, 2\)"),
        (torch.zeros(2), torch.zeros(1).long(), ValueError, r"shape \(\) .* not \(1,\)"),
        (torch.zeros(3, 2, 4), torch.zeros(3, 2).long(), ValueError, r"shape \(3, 4\) .* not \(3, 2\)"),
        (torch.zeros(3, 2), torch.zeros(3), ValueError, r"probabilities .*\(3, 2\), not \(3,\).*integers"),
        (torch.zeros(3, 2), torch.zeros(2, 3), ValueError, r"probabilities .*\(3, 2\), not \(2, 3\)"),
        (torch.zeros(3, 0), torch.zeros(3).long(), ValueError, r"\(3, 0\) have no classes"),
        (torch.zeros(0), torch.tensor(0), ValueError, r"\(0,\) have no classes"),
        (
            torch.zeros(3, 2),
            torch.zeros(3, dtype=torch.long, device="meta"),
            ValueError,
            "logits are on cpu but target is on meta",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(logits, target, error, message):
    for loss in (CrossEntropy(), LabelSmoothing(), FocalLoss(), LABO()):
        with pytest.raises(error, match=message):
            loss(logits, target)


def test_weights_for_another_number_of_classes_are_refused():
    logits, labels = batch(3, 4)
    for loss in every_loss(4, weight=torch.ones(5)).values():
        with pytest.raises(ValueError, match="weight has 5 values, but there are 4 classes"):
            loss(logits, labels, logits)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reduction": "avg"}, ValueError, "reduction must be 'mean', 'sum' or 'none', not 'avg'"),
        ({"reduction": None}, ValueError, "reduction must be 'mean', 'sum' or 'none', not None"),
        ({"ignore_index": 1.5}, TypeError, "ignore_index must be a whole number, not 1.5"),
        ({"ignore_index": True}, TypeError, "ignore_index must be a whole number, not True"),
        ({"weight": torch.ones(2, 2)}, ValueError, r"weight must be 1-D .*\(2, 2\)"),
        ({"weight": torch.tensor([1, 2])}, TypeError, "weight must have floating-point"),
        ({"weight": torch.tensor([1.0, INF])}, ValueError, "weight must be finite .* class 1 has inf"),
    ],
)
def test_options_that_cannot_be_are_refused(options, error, message):
    for kind in (
        CrossEntropy,
        LabelSmoothing,
        ConfidencePenalty,
        FocalLoss,
        AntiFocalLoss,
        Distillation,
        LABO,
    ):
        with pytest.raises(error, match=message):
            kind(**options)


# --- precision, autocast, layouts ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_gives_a_single_precision_loss(name, dtype):
    logits, labels, _ = shaped((6,), 4, dtype)
    weight = torch.tensor([0.3, 1.1, 0.7, 1.9])
    loss = every_loss(4, weight=weight)[name]
    expected = loss(logits.float(), labels, logits.float() / 2)
    with torch.autocast("cpu", torch.bfloat16):
        found, gradient = value_and_gradient(loss, logits, labels, logits / 2)
        assert F.cross_entropy(logits, labels).dtype == torch.float32
    assert found.dtype == torch.float32
    assert gradient.dtype == dtype
    close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_does_not_round_probabilities(name):
    logits, _, probabilities = shaped((6,), 4, torch.float32)
    weight = torch.tensor([0.3, 1.1, 0.7, 1.9])
    loss = every_loss(4, weight=weight, reduction="none")[name]
    expected = loss(logits, probabilities, logits / 2)
    with torch.autocast("cpu", torch.bfloat16):
        found = loss(logits, probabilities, logits / 2)
    close(found, expected, rtol=1e-6, atol=1e-6)


def test_double_precision_stays_double_under_autocast():
    logits, labels = batch()
    with torch.autocast("cpu", torch.bfloat16):
        assert CrossEntropy()(logits, labels).dtype == torch.float64


@pytest.mark.parametrize("name", NAMES)
def test_the_layout_in_memory_does_not_matter(name):
    logits, labels, probabilities = shaped((4, 3), 4, seed=5)
    teacher, _, _ = shaped((4, 3), 4, seed=6)
    loss = every_loss(4, weight=torch.rand(4, dtype=torch.float64))[name]

    def strided(tensor):
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)

    for target in (labels, probabilities):
        expected, slope = value_and_gradient(loss, logits, target, teacher)
        assert not strided(logits).is_contiguous()
        found = loss(strided(logits), strided(target), strided(teacher))
        close(found, expected)
        leaf = strided(logits).requires_grad_()
        loss(leaf, strided(target), strided(teacher)).backward()
        close(leaf.grad, slope)


@pytest.mark.parametrize("name", NAMES)
def test_expanded_inputs(name):
    row, _, other = shaped((1,), 4)
    label = torch.tensor([2])
    loss = every_loss(4, reduction="none")[name]
    for target in (label, other):
        expected, slope = value_and_gradient(loss, row, target, row / 2)
        leaf = row.clone().requires_grad_()
        many = target.expand(5) if target is label else target.expand(5, 4)
        found = loss(leaf.expand(5, 4), many, (row / 2).expand(5, 4))
        close(found, expected.expand(5))
        found.sum().backward()
        close(leaf.grad, 5 * slope)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_given_is_changed(name):
    logits, labels = batch(6, 4)
    labels[1] = -100
    teacher, _ = batch(6, 4, seed=1)
    before = [logits.clone(), labels.clone(), teacher.clone()]
    every_loss(4)[name](logits.requires_grad_(), labels, teacher).backward()
    for now, then in zip((logits.detach(), labels, teacher), before, strict=True):
        assert torch.equal(now, then)


@pytest.mark.parametrize("name", NAMES)
def test_more_dimensions_are_more_examples(name):
    logits, labels, probabilities = shaped((2, 3, 2), 4)
    teacher, _, _ = shaped((2, 3, 2), 4, seed=1)

    def flat(tensor):
        return tensor.movedim(1, -1).reshape(-1, 4)

    weight = torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64)
    for reduction in ("mean", "sum", "none"):
        loss = every_loss(4, reduction=reduction, weight=weight)[name]
        for target in (labels, probabilities):
            flattened = labels.reshape(-1) if target is labels else flat(probabilities)
            expected = loss(flat(logits), flattened, flat(teacher))
            found = loss(logits, target, teacher)
            close(found, expected.reshape(2, 3, 2) if reduction == "none" else expected)


@pytest.mark.parametrize("name", NAMES)
def test_one_example_without_a_dimension_for_the_batch(name):
    logits, label, probabilities = shaped((), 4)
    teacher, _, _ = shaped((), 4, seed=1)
    loss = every_loss(4)[name]
    close(loss(logits, label, teacher), loss(logits[None], label[None], teacher[None]))
    close(loss(logits, probabilities, teacher), loss(logits[None], probabilities[None], teacher[None]))


# --- derivatives ---


# What these hold constant has no part in the gradient; that is checked by hand elsewhere.
HOLDING = {"labo", "labo, reversed", "labo, fixed", "focal, detached", "anti-focal"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HOLDING])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_gradients_agree_with_differences(name, kind):
    logits, labels, probabilities = shaped((3,), 4)
    teacher, _, _ = shaped((3,), 4, seed=1)
    target = labels if kind == "indices" else probabilities
    weight = torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64)
    loss = every_loss(4, weight=weight)[name]
    assert torch.autograd.gradcheck(lambda z: loss(z, target, teacher), logits.requires_grad_())


@pytest.mark.parametrize("loss", [LabelSmoothing(0.2), LabelSmoothing(0.2, "others"), ConfidencePenalty(0.4)])
def test_second_derivatives_agree_with_differences(loss):
    logits, labels = batch(2, 3)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@pytest.mark.parametrize("name", NAMES)
def test_gradients_by_torch_func(name):
    logits, labels = batch(5, 4)
    labels[1] = -100
    teacher, _ = batch(5, 4, seed=1)
    loss = every_loss(4)[name]
    _, expected = value_and_gradient(loss, logits, labels, teacher)
    close(torch.func.grad(lambda z: loss(z, labels, teacher))(logits), expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_vmap_over_examples(name, kind):
    logits, labels, probabilities = shaped((5,), 4)
    teacher, _, _ = shaped((5,), 4, seed=1)
    target = labels if kind == "indices" else probabilities
    expected, slope = value_and_gradient(every_loss(4, reduction="none")[name], logits, target, teacher)
    loss = every_loss(4)[name]
    close(torch.func.vmap(loss)(logits, target, teacher), expected)
    close(torch.func.vmap(torch.func.grad(loss))(logits, target, teacher), slope)


@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_a_stack_of_batches(name):
    logits, labels, _ = shaped((6,), 4)
    teacher, _, _ = shaped((6,), 4, seed=1)
    labels[4] = -100
    loss = every_loss(4, weight=torch.tensor([0.5, 1.0, 2.0, 0.1]))[name]
    stacked = [value.reshape(3, 2, *value.shape[1:]) for value in (logits, labels, teacher)]
    expected = [loss(*(value[i] for value in stacked)) for i in range(3)]
    close(torch.func.vmap(loss)(*stacked), torch.stack(expected))


@pytest.mark.parametrize("name", NAMES)
def test_jacobian_and_hessian(name):
    logits, labels = batch(2, 3)
    teacher, _ = batch(2, 3, seed=1)
    weight = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    none = every_loss(3, reduction="none", weight=weight)[name]
    jacobian = torch.func.jacrev(lambda z: none(z, labels, teacher))(logits)
    close(jacobian, torch.autograd.functional.jacobian(lambda z: none(z, labels, teacher), logits))
    assert jacobian[0, 1].abs().max() == jacobian[1, 0].abs().max() == 0
    total = every_loss(3, weight=weight)[name]
    hessian = torch.func.hessian(lambda z: total(z, labels, teacher))(logits)
    close(hessian, torch.autograd.functional.hessian(lambda z: total(z, labels, teacher), logits))


def test_the_curvature_of_cross_entropy_is_the_covariance_of_the_prediction():
    logits, labels = batch(1, 4)
    p = [math.exp(value) for value in log_softmax(logits[0].tolist())]
    expected = [[p[i] * ((i == j) - p[j]) for j in range(4)] for i in range(4)]
    for loss in (CrossEntropy(), LabelSmoothing(0.4), LABO(alpha=0.4)):
        found = torch.func.hessian(lambda z, loss=loss: loss(z, labels))(logits)[0, :, 0]
        close(found, torch.tensor(expected, dtype=torch.float64))


# --- torch.compile ---


@pytest.mark.parametrize(
    ("name", "backend"),
    [
        ("cross entropy", "eager"),
        ("label smoothing, matrix, others", "aot_eager"),
        ("confidence penalty", "eager"),
        ("focal", "eager"),
        ("anti-focal", "eager"),
        ("distillation", "aot_eager"),
        ("labo", "aot_eager"),
    ],
)
def test_compiled_in_one_graph_it_is_the_same(name, backend):
    torch._dynamo.reset()
    logits, labels = batch(6, 4)
    labels[2] = -100
    teacher, _ = batch(6, 4, seed=1)
    loss = every_loss(4, weight=torch.tensor([0.5, 1.0, 2.0, 0.1], dtype=torch.float64))[name]
    expected, slope = value_and_gradient(loss, logits, labels, teacher)
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    value, gradient = value_and_gradient(compiled, logits, labels, teacher)
    close(value, expected)
    close(gradient, slope)


def test_a_pack_compiled_in_one_graph_is_the_same():
    torch._dynamo.reset()
    logits, labels = batch(6, 4)
    loss = LabelSmoothing(torch.tensor([0.1, 0.3], dtype=torch.float64))
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    arguments = (torch.stack([logits, 2 * logits]), labels.expand(2, 6))
    close(compiled(*arguments), loss(*arguments))


@pytest.mark.parametrize("fullgraph", [False, True])
def test_compiled_it_leaves_the_warm_up_by_itself(fullgraph):
    torch._dynamo.reset()
    logits, labels = batch(6, 4)
    loss = LABO(alpha=0.3, warmup_steps=2)
    plain = copy.deepcopy(loss)
    compiled = torch.compile(loss, backend="eager", fullgraph=fullgraph)
    for _ in range(4):
        close(compiled(logits, labels), plain(logits, labels))
    assert loss.step.item() == 4


# --- packs: hyper-parameters with one value per run ---

PACKS = {
    "alpha": (LabelSmoothing, {"alpha": [0.0, 0.1, 1.0]}, {}),
    "alpha, others": (LabelSmoothing, {"alpha": [0.0, 0.1, 1.0]}, {"spread": "others"}),
    "alpha, prior": (LabelSmoothing, {"alpha": [0.0, 0.3, 1.0]}, {"prior": distribution(4)}),
    "alpha, prior, others": (
        LabelSmoothing,
        {"alpha": [0.1, 0.3, 1.0]},
        {"prior": distribution(4), "spread": "others"},
    ),
    "alpha, matrix": (LabelSmoothing, {"alpha": [0.1, 0.3, 1.0]}, {"matrix": matrix(4)}),
    "alpha, matrix, others": (
        LabelSmoothing,
        {"alpha": [0.1, 0.3, 1.0]},
        {"matrix": matrix(4), "spread": "others"},
    ),
    "beta": (ConfidencePenalty, {"beta": [0.0, 0.1, 2.0]}, {}),
    "gamma": (FocalLoss, {"gamma": [0.0, 0.5, 2.0]}, {}),
    "gamma, detached": (FocalLoss, {"gamma": [0.0, 0.5, 2.0]}, {"detach": True}),
    "gamma, alpha": (AntiFocalLoss, {"gamma": [0.0, 1.0, 2.0], "alpha": [0.5, 1.0, 0.0]}, {}),
    "alpha of anti-focal": (AntiFocalLoss, {"alpha": [0.5, 1.0, 0.0]}, {"gamma": 2.0, "detach": False}),
    "temperature": (Distillation, {"temperature": [1.0, 2.0, 10.0]}, {}),
    "temperature, beta": (
        Distillation,
        {"temperature": [1.0, 2.0, 10.0], "beta": [0.0, 0.5, 1.0]},
        {"student_temperature": True, "scale_gradients": True},
    ),
    "beta of logits": (Distillation, {"beta": [0.0, 0.5, 1.0]}, {"match": "logits"}),
    "tau": (LABO, {"tau": [0.5, 1.25, 10.0]}, {}),
    "rho": (LABO, {"rho": [0.0, 0.5, 1.0]}, {"reading": "reversed", "include_kl": True}),
    "alpha of labo": (LABO, {"alpha": [0.0, 0.2, 1.0]}, {}),
    "tau, alpha of labo": (LABO, {"tau": [0.5, 1.0, 2.0], "alpha": [0.0, 0.2, 1.0]}, {"warmup_alpha": 0.1}),
}


@pytest.mark.parametrize(("kind", "numbers", "options"), PACKS.values(), ids=PACKS)
@pytest.mark.parametrize("target_kind", ["indices", "probabilities"])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_pack_is_a_loop_over_runs(kind, numbers, options, target_kind, reduction):
    logits = torch.stack([shaped((5, 2), 4, seed=run)[0] for run in range(3)])
    target = torch.stack(
        [shaped((5, 2), 4, seed=run)[1 if target_kind == "indices" else 2] for run in range(3)]
    )
    if target_kind == "indices":
        target[1, 3] = -100
    teacher = torch.stack([shaped((5, 2), 4, seed=run + 9)[0] for run in range(3)])
    options = {**options, "reduction": reduction, "weight": torch.tensor([0.5, 1.0, 2.0, 0.1])}
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in numbers.items()}
    found, gradient = value_and_gradient(kind(**tensors, **options), logits, target, teacher)
    assert found.shape == ((3,) if reduction == "mean" else (3, 5, 2))
    for run in range(3):
        single = kind(**{name: values[run] for name, values in numbers.items()}, **options)
        expected, slope = value_and_gradient(single, logits[run], target[run], teacher[run])
        close(found[run], expected)
        close(gradient[run], slope)


@pytest.mark.parametrize("student_temperature", [False, True])
def test_a_pack_with_stored_top_logits(student_temperature):
    logits = torch.stack([batch(5, 6, seed=run)[0] for run in range(2)])
    labels = torch.stack([batch(5, 6, seed=run)[1] for run in range(2)])
    tops = [top_logits(batch(5, 6, seed=run + 9)[0], 3) for run in range(2)]
    pack = Distillation(torch.tensor([1.0, 4.0], dtype=torch.float64), 0.5, student_temperature)
    stacked = TopLogits(torch.stack([top.values for top in tops]), torch.stack([top.classes for top in tops]))
    found = pack(logits, labels, stacked)
    for run, temperature in enumerate((1.0, 4.0)):
        single = Distillation(temperature, 0.5, student_temperature)
        close(found[run], single(logits[run], labels[run], tops[run]))


def test_a_pack_of_one_run():
    logits, labels = batch(5, 4)
    found = LabelSmoothing(torch.tensor([0.2]))(logits[None], labels[None])
    assert found.shape == (1,)
    close(found[0], LabelSmoothing(0.2)(logits, labels), rtol=1e-7, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_a_pack_returns_the_precision_of_the_logits(dtype):
    logits, labels = batch(5, 4, dtype)
    numbers = torch.tensor([0.1, 0.2], dtype=torch.float64)
    for loss in (LabelSmoothing(numbers), FocalLoss(numbers), LABO(numbers, warmup_steps=1)):
        assert loss(logits.expand(2, 5, 4), labels.expand(2, 5)).dtype == dtype


def test_a_number_in_a_tensor_is_that_number():
    logits, labels = batch(5, 4)
    teacher, _ = batch(5, 4, seed=1)

    def number(value):
        return torch.tensor(value, dtype=torch.float64)

    pairs = [
        (LabelSmoothing(number(0.3)), LabelSmoothing(0.3)),
        (ConfidencePenalty(number(0.3)), ConfidencePenalty(0.3)),
        (FocalLoss(number(0.0)), FocalLoss(0.0)),
        (FocalLoss(number(1.5)), FocalLoss(1.5)),
        (AntiFocalLoss(number(2.0), number(0.5)), AntiFocalLoss(2.0, 0.5)),
        (Distillation(number(2.0), number(0.5)), Distillation(2.0, 0.5)),
        (LABO(number(2.0), number(0.5)), LABO(2.0, 0.5)),
        (LABO(alpha=number(0.5)), LABO(alpha=0.5)),
    ]
    for tensor, plain in pairs:
        for found, expected in zip(
            value_and_gradient(tensor, logits, labels, teacher),
            value_and_gradient(plain, logits, labels, teacher),
            strict=True,
        ):
            assert found.shape == expected.shape
            close(found, expected)


def test_packs_whose_numbers_of_runs_differ_are_refused():
    loss = AntiFocalLoss(gamma=torch.ones(3), alpha=torch.ones(2))
    with pytest.raises(ValueError, match=r"one value per run.*'gamma': 3, 'alpha': 2"):
        loss(torch.zeros(3, 5, 4), torch.zeros(3, 5).long())


@pytest.mark.parametrize("shape", [(2, 5, 4), (4,), ()])
def test_logits_without_the_runs_of_a_pack_are_refused(shape):
    with pytest.raises(ValueError, match="alpha has 3 values, one per run, so the first dimension of logits"):
        LabelSmoothing(torch.full((3,), 0.1))(torch.zeros(shape), torch.zeros(3, 5).long())


@pytest.mark.parametrize("shape", [(2, 5), ()])
def test_a_target_without_the_runs_of_a_pack_is_refused(shape):
    with pytest.raises(ValueError, match="first dimension of target must be the 3 runs"):
        LabelSmoothing(torch.full((3,), 0.1))(torch.zeros(3, 5, 4), torch.zeros(shape).long())


def test_a_label_out_of_range_in_any_run_of_a_pack_is_refused():
    target = torch.zeros(3, 5).long()
    target[2, 1] = 4
    with pytest.raises(TargetError, match="label 4 at position 1"):
        LabelSmoothing(torch.full((3,), 0.1))(torch.zeros(3, 5, 4), target)


def test_a_loss_that_keeps_a_table_is_no_pack():
    class WithTable(LabelSmoothing):
        shares_state = True

    loss = WithTable(torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match=r"WithTable keeps a table.*functional_call"):
        loss(torch.zeros(2, 5, 4), torch.zeros(2, 5).long())


def test_a_pack_of_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="logits must be a tensor, not list"):
        LabelSmoothing(torch.tensor([0.1]))([[[0.0]]], torch.zeros(1, 1).long())


# --- learnable hyper-parameters ---


@pytest.mark.parametrize("spread", ["all", "others"])
def test_alpha_can_be_learnt(spread):
    logits, labels = batch(6, 4)
    alpha = nn.Parameter(torch.tensor(0.2, dtype=torch.float64))
    loss = LabelSmoothing(alpha, spread)
    assert [name for name, _ in loss.named_parameters()] == ["alpha"]
    loss(logits, labels).backward()
    # The loss is linear in alpha: its slope is the difference of the ends.
    ends = [
        sum(
            cross_entropy(smoothed_target(y, 4, end, spread), row)
            for row, y in zip(logits.tolist(), labels.tolist(), strict=True)
        )
        / 6
        for end in (0.0, 1.0)
    ]
    assert alpha.grad.item() == pytest.approx(ends[1] - ends[0], rel=1e-12)


def test_the_alphas_of_a_pack_can_be_learnt():
    logits, labels = batch(6, 4)
    alpha = nn.Parameter(torch.tensor([0.2, 0.7], dtype=torch.float64))
    loss = LabelSmoothing(alpha)
    loss(torch.stack([logits, 2 * logits]), labels.expand(2, 6)).sum().backward()
    for run, factor in enumerate((1, 2)):
        slopes = [
            sum(-value / 4 for value in log_softmax(row)) + log_softmax(row)[y]
            for row, y in zip((factor * logits).tolist(), labels.tolist(), strict=True)
        ]
        assert alpha.grad[run].item() == pytest.approx(sum(slopes) / 6, rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "value", "options"),
    [
        (ConfidencePenalty, 0.3, {}),
        (FocalLoss, 1.5, {}),
        (AntiFocalLoss, 1.5, {}),
        (Distillation, 3.0, {"beta": 0.4, "student_temperature": True, "scale_gradients": True}),
        (LABO, 2.0, {"include_kl": True}),
    ],
)
def test_the_first_number_of_every_loss_can_be_learnt(kind, value, options):
    logits, labels = batch(6, 4)
    teacher, _ = batch(6, 4, seed=1)
    parameter = nn.Parameter(torch.tensor(value, dtype=torch.float64))
    kind(parameter, **options)(logits, labels, teacher).backward()
    step = 1e-5
    above, below = (kind(value + d, **options)(logits, labels, teacher).item() for d in (step, -step))
    assert parameter.grad.item() == pytest.approx((above - below) / (2 * step), rel=1e-6)


# --- state ---


def make(name):
    if name == "numbers in tensors":
        return AntiFocalLoss(torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.7]))
    if name == "learnt":
        return LabelSmoothing(nn.Parameter(torch.tensor(0.3)))
    if name == "warming up":
        return LABO(warmup_steps=3)
    return every_loss(4, weight=torch.tensor([0.5, 1.0, 2.0, 0.1]))[name]


def called(loss):
    logits, labels = batch(6, 4, torch.float32)
    teacher, _ = batch(6, 4, torch.float32, seed=1)
    if isinstance(loss, AntiFocalLoss) and isinstance(loss.gamma, torch.Tensor):
        logits, labels, teacher = logits.expand(2, 6, 4), labels.expand(2, 6), teacher.expand(2, 6, 4)
    return loss(logits, labels, teacher)


def by_pickle(loss):
    return pickle.loads(pickle.dumps(loss))


def by_file(loss):
    buffer = io.BytesIO()
    torch.save(loss, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@pytest.mark.parametrize("name", [*NAMES, "numbers in tensors", "learnt", "warming up"])
@pytest.mark.parametrize("copied", [copy.deepcopy, by_pickle, by_file])
def test_copies_are_the_same_loss(name, copied):
    loss = make(name)
    called(loss)
    other = copied(loss)
    assert type(other) is type(loss)
    assert repr(other) == repr(loss)
    for _ in range(3):
        close(called(other), called(loss))


@pytest.mark.parametrize("name", [*NAMES, "numbers in tensors", "learnt", "warming up"])
def test_the_state_can_be_saved_and_loaded(name):
    loss, other = make(name), make(name)
    for value in loss.state_dict().values():
        if value.is_floating_point():
            value.mul_(0.9)
    for _ in range(3):
        called(loss)
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    buffer.seek(0)
    other.load_state_dict(torch.load(buffer, weights_only=True))
    close(called(other), called(loss))


def test_it_moves_with_its_tensors():
    loss = LabelSmoothing(torch.tensor(0.1), prior=torch.tensor([0.5, 0.5]), weight=torch.ones(2)).double()
    assert loss.alpha.dtype == loss.prior.dtype == loss.weight.dtype == torch.float64
    assert set(loss.state_dict()) == {"alpha", "prior", "weight"}
    assert set(CrossEntropy().state_dict()) == set()


@pytest.mark.parametrize("name", NAMES)
def test_inplace_is_a_permission_without_effect_where_no_kernel_runs(name):
    logits, labels = batch(6, 4, torch.float32)
    before = logits.clone()
    loss = every_loss(4, inplace=True)[name]
    leaf = logits.requires_grad_()
    first = loss(leaf, labels, before / 2)
    first.backward()
    assert torch.equal(leaf.detach(), before)
    close(first, every_loss(4)[name](before, labels, before / 2))
    assert "inplace=True" in repr(loss)


def test_it_prints_what_differs_from_the_defaults():
    assert repr(CrossEntropy()) == "CrossEntropy()"
    loss = CrossEntropy(ignore_index=0, weight=torch.ones(3), reduction="sum")
    assert repr(loss) == "CrossEntropy(ignore_index=0, weight=<3 classes>, reduction='sum')"


def test_a_new_loss_says_where_the_mass_goes_and_gets_the_rest():
    class ToTheFirst(SoftTargetLoss):
        def smoothing(self, batch, given):
            return given, F.one_hot(torch.tensor(0), batch.classes).to(batch.logits.dtype)

        def extra(self, batch, given):
            return batch.logits[:, 0]

    logits, labels = batch(4, 3)
    labels[1] = -100
    weight = [0.5, 2.0, 3.0]
    for amount in (0.0, 0.25, 1.0):
        total = below = 0.0
        for row, y in zip(logits.tolist(), labels.tolist(), strict=True):
            if y != -100:
                log_p = log_softmax(row)
                total -= (1 - amount) * weight[y] * log_p[y] + amount * weight[0] * log_p[0]
                total += weight[y] * row[0]
                below += weight[y]
        loss = ToTheFirst(weight=torch.tensor(weight, dtype=torch.float64))
        assert loss(logits, labels, amount).item() == pytest.approx(total / below, rel=1e-12)
    loss.after_step(nn.Linear(1, 1))
    loss.end_epoch()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("soft", [False, True])
def test_logits_of_no_classes_as_in_torch(reduction, soft):
    logits = torch.zeros(5, 0, requires_grad=True)
    target = torch.zeros(5, 0) if soft else torch.full((5,), -100)
    expected = F.cross_entropy(logits, target, reduction=reduction)
    for loss in (
        CrossEntropy(reduction=reduction),
        LabelSmoothing(0.1, reduction=reduction),
        LABO(reduction=reduction),
    ):
        found = loss(logits, target)
        torch.testing.assert_close(found, expected, equal_nan=True)
        assert torch.autograd.grad(found.sum(), logits)[0].shape == (5, 0)
    for loss in (OnlineLabelSmoothing(4), KnowledgeRefinery(4)):
        with pytest.raises(ValueError, match="the table is for 4 classes, but the logits have 0"):
            loss(logits, target)


@pytest.mark.parametrize("loss", [CrossEntropy, LabelSmoothing, LABO])
def test_of_probabilities_nothing_can_be_ignored(loss):
    logits, target = torch.zeros(3, 4), torch.full((3, 4), 0.25)
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point"):
        F.cross_entropy(logits, target, ignore_index=1)
    with pytest.raises(
        ValueError, match=r"target has probabilities, .* but ignore_index is 1: leave ignore_index out"
    ):
        loss(ignore_index=1)(logits, target)
    assert loss(ignore_index=-1)(logits, target).isfinite()


@pytest.mark.parametrize("mode", ["auto", "never", "always"])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_weights_of_zero_have_no_mean_as_in_torch(alpha, mode):
    """The soft part puts weight on other classes, but the mean divides by that of the labels."""
    logits, labels = torch.randn(3, 4, requires_grad=True), torch.tensor([0, 1, 0])
    for weight in (torch.zeros(4), torch.tensor([0.0, 0.0, 1.0, 2.0])):
        assert F.cross_entropy(logits, labels, weight, label_smoothing=alpha).isnan()
        with use_kernels(mode):
            assert LabelSmoothing(alpha, weight=weight)(logits, labels).isnan()
            assert LabelSmoothing(alpha, weight=weight)(logits.detach(), labels).isnan()
            total = LabelSmoothing(alpha, weight=weight, reduction="sum")(logits, labels)
        expected = F.cross_entropy(logits, labels, weight, label_smoothing=alpha, reduction="sum")
        torch.testing.assert_close(total, expected)
        assert LinearLoss(LabelSmoothing(alpha, weight=weight))(logits, torch.eye(4), labels).isnan()


@pytest.mark.parametrize("make", [LabelSmoothing, FocalLoss, LABO, ConfidencePenalty])
def test_class_weights_are_never_taken_for_a_pack(make):
    """Whoever passes them first, as to torch's loss, has as many of them as classes."""
    weights = torch.tensor([0.1, 0.5, 1.0, 0.2])
    for shape in ((4, 4), (4, 4, 4), (4, 4, 4, 4)):
        logits, labels = torch.randn(shape), torch.zeros(shape[:-1], dtype=torch.int64)
        with pytest.raises(ValueError, match=r"could be one per class or one per run.*weight="):
            make(weights)(logits, labels)
        with pytest.raises(ValueError, match=r"could be one per class or one per run.*weight="):
            make(weights)(logits, torch.randn(shape).softmax(1))
    logits, labels = torch.randn(4, 4, 4), torch.zeros(4, 4, dtype=torch.int64)
    meant = make(weights, weight=torch.ones(4))(logits, labels)
    alone = torch.stack([make(w.item())(*run) for w, *run in zip(weights, logits, labels, strict=True)])
    torch.testing.assert_close(meant, alone)
    with pytest.raises(ValueError, match="one per run, so the first dimension of logits must be the 4 runs"):
        make(weights)(torch.randn(6, 4), torch.zeros(6, dtype=torch.int64))
